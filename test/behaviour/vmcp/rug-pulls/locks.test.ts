/** Unusable locks, and backends without one: neither allows anything. */
import t from 'tap'
import { until } from '../../../helpers/redis.ts'
import { describedAs } from '../../../helpers/vmcp/rug-pull-clients.ts'
import { parseVmcpConfig } from '../../../../runtime/config/index.ts'
import { approved, changed, type Mode, modes, modesOfRow, other } from '../../../helpers/vmcp/pinning.ts'
import {
  everyWay,
  inMode,
  isOpen,
  told,
  toldToNoModel,
  type Expected,
} from '../../../helpers/vmcp/rug-pull.ts'
import { lockFor, startRugPull } from '../../../helpers/vmcp/rug-pull-rig.ts'

t.setTimeout(600_000)
t.jobs = 4

const offer = { tools: [approved, other] }
const offered: Expected = { description: 'Reads a file', call: { backend: 'files' } }
const closed = (reason: string): Expected => ({ description: undefined, call: 'denied', reason })
const unusable = (mode: Mode): Expected => (isOpen(mode) ? offered : closed('lock_invalid'))

interface Row {
  readonly toolLocks: readonly object[]
  readonly pinning?: object
  readonly expected: (mode: Mode) => Expected
  /** Message of the condition, or undefined if there is none. */
  readonly problem?: RegExp
}

const rows: Readonly<Record<string, Row>> = {
  'a lock that is not valid': {
    toolLocks: [{ backend: 'files', failure: 'MCPToolLock files is not valid: spec.tools[0]: is required' }],
    expected: unusable,
    problem: /cannot be used: MCPToolLock files is not valid/,
  },
  'a lock from a newer version': {
    toolLocks: [{ backend: 'files', failure: 'spec.scheme: must be gatehouse.pin.v1' }],
    expected: unusable,
    problem: /spec\.scheme/,
  },
  'a definition that is not JSON': {
    toolLocks: [{ backend: 'files', tools: [{ name: 'read', definition: '{"name":"read"' }] }],
    expected: unusable,
    problem: /invalid definition/,
  },
  'a definition of another tool': {
    toolLocks: [{ backend: 'files', tools: [{ name: 'read', definition: other }] }],
    expected: unusable,
    problem: /the definition belongs to a different item, "list"/,
  },
  'two locks with the same tool': {
    toolLocks: [
      lockFor('files', offer),
      lockFor('files', { tools: [changed(approved, { title: 'Other' })] }),
    ],
    expected: unusable,
    problem: /duplicate name in the locks for this backend/,
  },
  'two locks that disagree': {
    toolLocks: [lockFor('files', offer, { onChanged: 'observe' }), { backend: 'files', onChanged: 'block' }],
    expected: () => closed('lock_invalid'),
    problem: /different values for onChanged/,
  },
  'no lock, noLock: allow': { toolLocks: [], expected: () => offered },
  'no lock, noLock: block': {
    toolLocks: [],
    pinning: { noLock: 'block' },
    expected: () => closed('no_lock'),
    problem: /backend files has no tool lock and offers nothing, because pinning\.noLock is block/,
  },
  'a lock of another server, noLock: block': {
    toolLocks: [lockFor('mails', {})],
    pinning: { noLock: 'block' },
    expected: () => closed('no_lock'),
    problem: /backend files has no tool lock/,
  },
}

for (const [at, [name, row]] of Object.entries(rows).entries()) {
  for (const mode of modesOfRow(at)) {
    t.test(`${name}: ${mode}`, { buffered: true }, async (t) => {
      const rig = await startRugPull(t, {
        offers: { files: offer, mails: {} },
        config: { pinning: inMode(mode, row.pinning) },
      })
      for (const client of rig.clients) await everyWay(t, client, 'read', offered)
      const already = rig.answers.length
      rig.reload({ toolLocks: row.toolLocks })
      const expected = row.expected(mode)
      await until(async () => {
        const tools = await Promise.all(rig.clients.map((client) => client.tools()))
        return tools.every((list) => describedAs(list, 'read') === expected.description)
      })
      if (row.problem) await until(() => rig.reported().problems.some(({ backend }) => backend === 'files'))
      for (const client of rig.clients) await everyWay(t, client, 'read', expected)
      await told(t, rig, { mode, drift: [], expected })
      toldToNoModel(t, rig.answers.slice(already))
      const { report, status } = await rig.everywhere()
      for (const problems of [report.problems, status.problem_details]) {
        const found = problems.find(({ type, backend }) => type === 'tool_lock' && backend === 'files')
        if (row.problem) t.match(found, { backend: 'files', message: row.problem, fix: /gatehouse lock/ })
        else t.equal(found, undefined)
      }
    })
  }
}

t.test('a lock file from a newer version is rejected in every mode', (t) => {
  for (const mode of modes) {
    const file = {
      name: 'x',
      groupRef: 'x',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {},
      pinning: inMode(mode),
      toolLocks: [lockFor('files', offer, { scheme: 'gatehouse.pin.v2' })],
    }
    t.throws(() => parseVmcpConfig(JSON.stringify(file)), /toolLocks\[0\]\.scheme.*gatehouse\.pin\.v1/)
  }
  t.end()
})
