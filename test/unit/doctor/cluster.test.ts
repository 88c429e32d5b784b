/** Resources of a cluster that are not reconciled, and their conditions. */
import t from 'tap'
import {
  checkConditions,
  checkReconciled,
  type ClusterResource,
} from '../../../runtime/tools/doctor/cluster/resources.ts'

const all = (...resources: readonly ClusterResource[]) => ({ resources, unread: [] })
const now = Date.parse('2026-11-22T12:00:00Z')

function resource(
  name: string,
  observedGeneration: number | undefined,
  changed: string,
  more: object = {},
): ClusterResource {
  return {
    kind: 'MCPServer',
    object: {
      metadata: {
        name,
        namespace: 'team',
        generation: 2,
        creationTimestamp: '2026-11-01T00:00:00Z',
        managedFields: [
          { time: changed, operation: 'Apply' },
          { time: '2026-11-22T11:59:59Z', subresource: 'status' },
        ],
      },
      ...(observedGeneration === undefined ? {} : { status: { observedGeneration, ...more } }),
    },
  }
}

t.test('a generation that has not been observed for a minute is reported', async (t) => {
  const longAgo = '2026-11-22T11:00:00Z'
  t.match(checkReconciled(all(resource('done', 2, longAgo)), now), { result: 'ok' })
  t.match(checkReconciled(all(resource('fresh', 1, '2026-11-22T11:59:30Z')), now), { result: 'ok' })
  t.match(checkReconciled(all(resource('stale', 1, longAgo), resource('never', undefined, longAgo)), now), {
    code: 'cluster.stale',
    observed: 'MCPServer team/stale, MCPServer team/never',
  })
})

t.test('conditions that report a problem are listed with their reason', async (t) => {
  const conditions = [
    { type: 'GroupRefValidated', status: 'False', reason: 'GroupRefNotFound' },
    { type: 'Ready', status: 'False', reason: 'NotReady' },
    // Good when False, or informational only.
    { type: 'SessionStorageWarning', status: 'False', reason: 'SessionStorageWarningNotApplicable' },
    { type: 'ScalingLimited', status: 'False', reason: 'NotLimited' },
  ]
  t.match(checkConditions(all(resource('x', 2, '2026-11-22T11:00:00Z', { conditions }))), {
    result: 'warning',
    code: 'cluster.condition',
    observed:
      'MCPServer team/x: GroupRefValidated is False (GroupRefNotFound), MCPServer team/x: Ready is False (NotReady)',
  })
  const fine = resource('y', 2, '2026-11-22T11:00:00Z', { conditions: conditions.slice(2) })
  t.match(checkConditions(all(fine)), { result: 'ok' })
  t.match(checkConditions(all()), { result: 'ok' })
})

t.test('kinds that could not be read are unknown, never healthy', async (t) => {
  const read = { resources: [], unread: ['mcpservers', 'mcpgroups'] }
  const unknown = {
    result: 'unknown',
    code: 'cluster.rights',
    observed: 'no permission to read mcpservers, mcpgroups',
  }
  t.match(checkReconciled(read), unknown)
  t.match(checkConditions(read), unknown)
  const stale = { ...read, resources: [resource('stale', 1, '2026-11-22T11:00:00Z')] }
  t.match(checkReconciled(stale, now), { code: 'cluster.stale' })
})
