/** MCPExternalAuthConfig, without the embedded authorization server: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { clientAuthTables } from '../tables/client-auth.ts'
import { externalAuthTables } from '../tables/external-auth.ts'

proves(
  '2.cloudSts.fallbackRoleArn',
  '2.cloudSts.region',
  '2.cloudSts.roleMappings.roleArn',
  '2.cloudSts.rule.role',
  '2.error.exclusive.claim-matcher',
  '2.headerInjection.headerName',
  '2.limit.cloudSts.sessionDuration',
  '2.limit.roleMappings.priority',
  '2.limit.tenantId',
  '2.obo.authority',
  '2.obo.rule.optional',
  '2.obo.tenantId',
  '2.shape.SecretRef',
  '2.spec.bearerToken',
  '2.spec.cloudSts',
  '2.spec.embeddedAuthServer',
  '2.spec.headerInjection',
  '2.spec.obo',
  '2.spec.tokenExchange',
  '2.spec.type',
  '2.spec.unauthenticated',
  '2.spec.upstreamInject',
  '2.version.obo-optional',
)

await checkTables(t, [...externalAuthTables, ...clientAuthTables])

await t.test('external-auth: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(externalAuthTables)].sort())
})
