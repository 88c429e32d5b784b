/** The status of every kind: every field and bound. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { statusTables } from '../tables/status.ts'

proves(
  '2.limit.condition.message',
  '2.limit.condition.reason',
  '2.limit.condition.type',
  '2.state.condition-values',
  '2.status.condition.lastTransitionTime',
  '2.status.condition.message',
  '2.status.condition.observedGeneration',
  '2.status.condition.reason',
  '2.status.condition.type',
  '2.status.configHash',
  '2.status.observedGeneration',
  '2.status.referenceCount',
  '2.status.referencingWorkloads',
  '2.status.referencingWorkloads.kind',
  '2.status.referencingWorkloads.name',
  '3.status.conditions',
  '3.status.discoveredBackends',
  '3.status.discoveredBackends.circuitBreakerState',
  '3.status.discoveredBackends.circuitLastChanged',
  '3.status.discoveredBackends.lastHealthCheck',
  '3.status.discoveredBackends.name',
  '3.status.discoveredBackends.status',
  '3.status.message',
  '3.status.observedGeneration',
  '3.status.phase',
)

await checkTables(t, statusTables)

await t.test('status: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(statusTables)].sort())
})
