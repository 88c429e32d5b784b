/** Composite tools, inline and as a kind: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { workflowTables } from '../tables/workflow.ts'

proves(
  '3.config.compositeTools.name',
  '3.config.compositeTools.output.properties.type',
  '3.config.compositeTools.steps',
  '3.config.compositeTools.steps.id',
  '3.config.compositeTools.steps.itemVar',
  '3.config.compositeTools.steps.onCancel',
  '3.config.compositeTools.steps.onDecline',
  '3.config.compositeTools.steps.onError.action',
  '3.config.compositeTools.steps.type',
  '3.limit.forEach',
)

await checkTables(t, workflowTables)

await t.test('workflow: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(workflowTables)].sort())
})
