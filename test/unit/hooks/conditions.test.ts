import t from 'tap'
import { Conditions } from '../../../hooks/sync/conditions.ts'
import { observedTime } from '../../../hooks/sync/observed-time.ts'
import { readSyncRequest } from '../../../hooks/sync/protocol.ts'
import { validateStatus } from '../../helpers/hooks/status.ts'
import { proves } from '../../helpers/proves.ts'
import { cases } from '../../hooks/cases.ts'
import { makeHooks } from '../../../hooks/index.ts'
import { testSettings } from '../../hooks/world.ts'

const parent = (conditions: object[] = []) => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPGroup',
  metadata: { name: 'g', namespace: 'team', generation: 7 },
  status: { conditions },
})
const old = {
  type: 'Valid',
  status: 'True',
  reason: 'X',
  message: '',
  lastTransitionTime: '2020-01-01T00:00:00Z',
}

t.test('conditions: lastTransitionTime stays the same as long as the status does', async (t) => {
  const conditions = new Conditions(parent([old]), () => '2026-01-01T00:00:00Z')
  conditions.set('Valid', 'True', 'Other', 'another message')
  t.equal(conditions.get('Valid')?.lastTransitionTime, old.lastTransitionTime)
  t.equal(conditions.get('Valid')?.reason, 'Other')
  conditions.set('Valid', 'False', 'Broken', 'why')
  t.equal(conditions.get('Valid')?.lastTransitionTime, '2026-01-01T00:00:00Z')
})

t.test(
  'conditions: unset conditions are dropped, and the remaining ones are sorted and carry the generation',
  async (t) => {
    const conditions = new Conditions(parent([{ ...old, type: 'Gone' }]), () => '2026-01-01T00:00:00Z')
    conditions.set('B', 'Unknown', 'R', '')
    conditions.set('A', 'True', 'R', '')
    t.strictSame(
      conditions.list().map(({ type, status, observedGeneration }) => [type, status, observedGeneration]),
      [
        ['A', 'True', 7],
        ['B', 'Unknown', 7],
      ],
    )
  },
)

t.test("conditions: a message is truncated to the schema's limit, never inside a character", async (t) => {
  const conditions = new Conditions(parent(), () => '2026-01-01T00:00:00Z')
  conditions.set('A', 'True', 'R', '😀'.repeat(20_000))
  const message = conditions.get('A')?.message ?? ''
  t.ok(message.length <= 32_768)
  t.ok(message.isWellFormed())
})

t.test('conditions: every condition of every golden case fits the status schema', async (t) => {
  proves('2.status.conditions', '2.status.condition.status')
  const hooks = makeHooks(testSettings)
  for (const [key, scenario] of Object.entries(cases)) {
    const kind = key.split('/')[0] ?? ''
    const status = hooks.byKind(kind)?.sync(scenario()).status
    t.strictSame(validateStatus(kind as 'MCPGroup', status), [], key)
    for (const condition of (status?.['conditions'] ?? []) as Record<string, string>[]) {
      t.match(condition['status'], /^(True|False|Unknown)$/)
      t.match(condition['reason'], /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    }
  }
})

t.test('observedTime: returns the newest timestamp of the request, in whole seconds', async (t) => {
  const at = (time: string) => ({ managedFields: [{ time }] })
  const request = readSyncRequest(
    {
      parent: { ...parent([old]), metadata: { ...parent().metadata, ...at('2026-03-01T10:00:00Z') } },
      related: {
        'Secret.v1': {
          'team/s': {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: 's', namespace: 'team', creationTimestamp: '2026-03-01T12:00:00.5+01:00' },
          },
          'team/t': {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: 't', namespace: 'team', ...at('tomorrow') },
          },
        },
      },
    },
    'MCPGroup',
  )
  t.equal(observedTime(request), '2026-03-01T11:00:00Z')
})

t.test(
  'observedTime: returns the epoch for a request without timestamps, so that offline results never differ',
  async (t) => {
    t.equal(observedTime(readSyncRequest({ parent: parent() }, 'MCPGroup')), '1970-01-01T00:00:00Z')
  },
)
