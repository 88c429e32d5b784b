/** Kinds that the specification mentions but does not define: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { otherKindTables } from '../tables/other-kinds.ts'

proves('2.shape.SecretRef')

await checkTables(t, otherKindTables)

await t.test('other-kinds: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(otherKindTables)].sort())
})
