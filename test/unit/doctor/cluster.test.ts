/** Resources of a cluster that nobody reconciles, and their conditions. */
import t from 'tap'
import {
  checkConditions,
  checkReconciled,
  type ClusterResource,
} from '../../../runtime/doctor/cluster/resources.ts'

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

t.test('a generation that nobody has observed for a minute', async (t) => {
  const longAgo = '2026-11-22T11:00:00Z'
  t.match(checkReconciled([resource('done', 2, longAgo)], now), { result: 'ok' })
  t.match(checkReconciled([resource('fresh', 1, '2026-11-22T11:59:30Z')], now), { result: 'ok' })
  t.match(checkReconciled([resource('stale', 1, longAgo), resource('never', undefined, longAgo)], now), {
    code: 'cluster.stale',
    observed: 'MCPServer team/stale, MCPServer team/never',
  })
})

t.test('conditions that are False are named with their reason', async (t) => {
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'Ready' },
    { type: 'Valid', status: 'False', reason: 'GroupNotFound' },
  ]
  t.match(checkConditions([resource('x', 2, '2026-11-22T11:00:00Z', { conditions })]), {
    result: 'warning',
    code: 'cluster.condition',
    observed: 'MCPServer team/x: Valid is False (GroupNotFound)',
  })
  t.match(checkConditions([]), { result: 'ok' })
})
