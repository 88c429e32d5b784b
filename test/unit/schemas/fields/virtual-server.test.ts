/** VirtualMCPServer without spec.config: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { virtualServerTables } from '../tables/virtual-server.ts'

proves(
  '3.config.rateLimiting.tools.name',
  '3.error.authz.both',
  '3.error.optimizer.compat',
  '3.error.primaryUpstreamProvider',
  '3.limit.rateLimiting.maxTokens',
  '3.limit.replicas',
  '3.limit.sessionStorage.db',
  '3.spec.authServerConfig.primaryUpstreamProvider',
  '3.spec.groupRef',
  '3.spec.incomingAuth',
  '3.spec.incomingAuth.authzConfig.configMap.key',
  '3.spec.incomingAuth.authzConfig.configMap.name',
  '3.spec.incomingAuth.authzConfig.groupEntityType',
  '3.spec.incomingAuth.authzConfig.inline.policies',
  '3.spec.incomingAuth.authzConfig.type',
  '3.spec.incomingAuth.oidcConfigRef.name',
  '3.spec.incomingAuth.type',
  '3.spec.outgoingAuth.backends.type',
  '3.spec.outgoingAuth.default.externalAuthConfigRef',
  '3.spec.outgoingAuth.default.type',
  '3.spec.outgoingAuth.source',
  '3.spec.passthroughHeaders.restricted',
  '3.spec.serviceType',
  '3.spec.sessionAffinity',
  '3.spec.sessionStorage.address',
  '3.spec.sessionStorage.provider',
  '3.spec.telemetryConfigRef.name',
)

await checkTables(t, virtualServerTables)

await t.test('virtual-server: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(virtualServerTables)].sort())
})
