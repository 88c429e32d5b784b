/** spec.config.quotas and costs: every field, default, bound and rule. */
import t from 'tap'
import { checkTables } from '../tables/check.ts'
import { quotaTables } from '../tables/quotas.ts'

await checkTables(t, quotaTables)
