/**
 * Measures large installations: a real API server, a real Metacontroller and the built hooks server reconcile thousands
 * of objects. Ten times as many objects are then simulated with direct calls of the hooks.
 *
 * `make scale`, or `node test/bench/scale.ts --servers 2000 --namespaces 100 --backends 500 --others 10000`; `--rest
 * 300` sets the seconds for the measurement at rest, and `--part cluster`, `--part parents` or `--part backends`
 * selects one of the three parts. Needs the programs of test/helpers/kube and METACONTROLLER. Prints the tables of
 * docs/evidence/scale.md.
 */
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Cell, progress, table } from './vmcp/table.ts'
import type { FleetSize } from './scale/fleet.ts'

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '2000' },
    namespaces: { type: 'string', default: '100' },
    backends: { type: 'string', default: '500' },
    others: { type: 'string', default: '10000' },
    rest: { type: 'string', default: '300' },
    parents: { type: 'string', default: '20000' },
    part: { type: 'string', multiple: true, default: ['cluster', 'parents', 'backends'] },
  },
})

// Helpers use the built programs too.
process.env['GATEHOUSE_TEST_DIST'] ??= join(import.meta.dirname, '../../dist')
const { metacontrollerMissing } = await import('../helpers/kube/metacontroller.ts')
const { create, isWrite, startCluster, sum } = await import('./scale/cluster.ts')
const { fleet } = await import('./scale/fleet.ts')
const { changesTable } = await import('./scale/changes.ts')
const { quiet, settled } = await import('./scale/settle.ts')
const { simulateBackends, simulateParents } = await import('./scale/simulation.ts')
const { sizesTable } = await import('./scale/sizes.ts')
const { boundOf, usageOf } = await import('./scale/watch.ts')

/** Numbers of backends of one simulated server. */
const sizes = [100, 250, 500, 750, 1000, 2500, 5000]

const ends: (() => unknown)[] = []
const scope = { teardown: (end: () => unknown) => void ends.push(end) }
const { model = '' } = cpus()[0] ?? {}
console.log(
  `Node ${process.version}, ${cpus().length} x ${model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB\n`,
)
try {
  if (values.part.includes('cluster')) await measureCluster()
  if (values.part.includes('parents'))
    console.log(`${await simulateParents(scope, Number(values.parents))}\n`)
  if (values.part.includes('backends')) console.log(`${await simulateBackends(scope, sizes)}\n`)
} finally {
  for (const end of ends.toReversed()) await end()
}

async function measureCluster(): Promise<void> {
  const missing = metacontrollerMissing()
  if (missing) throw new Error(missing)
  const size: FleetSize = {
    servers: Number(values.servers),
    namespaces: Number(values.namespaces),
    backends: Number(values.backends),
    others: Number(values.others),
  }
  const manifests = fleet(size)
  const cluster = await startCluster(scope, size)
  progress(`creating ${manifests.length} objects`)
  await create(cluster.api, manifests)
  console.log(`${manifests.length} objects: ${JSON.stringify(size)}\n`)

  const rows: Cell[][] = []
  const head = [
    'phase',
    's',
    'syncs',
    'refused or failed',
    'sync p50',
    'sync p99',
    'API writes',
    'API reads',
    'CPU s hooks',
    'CPU s Metacontroller',
    'peak RSS MB hooks',
    'peak RSS MB Metacontroller',
  ]
  async function phase(name: string, work: (start: number) => Promise<number>): Promise<void> {
    progress(name)
    const [calls, requests, times] = [
      await cluster.hookCalls(),
      await cluster.apiRequests(),
      await cluster.syncTimes(),
    ]
    const start = performance.now()
    const { pid } = running
    const before = [usageOf(cluster.hooks.pid), usageOf(pid)]
    const seconds = await work(start)
    const after = [usageOf(cluster.hooks.pid), usageOf(pid)]
    const asked = (await cluster.hookCalls()).since(calls)
    const sent = (await cluster.apiRequests()).since(requests)
    const took = (await cluster.syncTimes()).since(times)
    const writes = sum(sent, isWrite)
    rows.push([
      name,
      seconds,
      sum(asked, (key) => /^sync \w+$/.test(key)),
      sum(asked, (key) => / \d+$/.test(key)),
      boundOf(took, 0.5),
      boundOf(took, 0.99),
      writes,
      sent.total - writes,
      ...after.map(({ cpuSeconds }, index) => cpuSeconds - (before[index]?.cpuSeconds ?? 0)),
      ...after.map(({ peakRssMb }) => peakRssMb),
    ])
    progress(`${name}: ${asked.text}`)
    progress(`${name}: ${sent.text}`)
    const failed = running.log().match(/failed to sync/g)?.length ?? 0
    progress(`${name}: Metacontroller failed ${failed} syncs since it started`)
  }
  let running = await cluster.startMetacontroller()
  await phase('all new', (start) => settled(cluster, start))
  running = await cluster.startMetacontroller()
  await phase('Metacontroller starts again', (start) => quiet(cluster, start, manifests.length))
  console.log(`${await changesTable(cluster)}\n`)
  const restMs = Number(values.rest) * 1000
  if (restMs > 0)
    await phase('at rest', async () => {
      await pause(restMs)
      return restMs / 1000
    })
  console.log(`${table(head, rows)}\n\n${await sizesTable(cluster)}\n`)
}
