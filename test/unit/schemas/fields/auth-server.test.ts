/** The embedded authorization server: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { authServerTables } from '../tables/auth-server.ts'

proves(
  '2.embeddedAuthServer.issuer.form',
  '2.embeddedAuthServer.primaryUpstreamProvider.match',
  '2.embeddedAuthServer.upstreamProviders',
  '2.error.exclusive.addr-sentinelConfig',
  '2.error.exclusive.clientId-dcrConfig',
  '2.error.exclusive.discoveryUrl-registrationEndpoint',
  '2.error.exclusive.sentinelAddrs-sentinelService',
  '2.error.upstream.config-mismatch',
  '2.limit.cimd.cacheFallbackTtl',
  '2.limit.cimd.cacheMaxSize',
  '2.limit.dcr-urls',
  '2.limit.identity-paths',
  '2.limit.provider-name',
  '2.limit.sentinelService.port',
  '2.limit.softwareId',
  '2.limit.softwareStatement',
  '2.limit.store-timeouts',
  '2.limit.subjectClaim',
  '2.limit.tokenLifespans',
  '2.oauth2Config.authorizationEndpoint',
  '2.oauth2Config.tokenEndpoint',
  '2.oidcConfig.additionalAuthorizationParams.managed',
  '2.oidcConfig.clientId',
  '2.shape.SecretRef',
  '2.storage.redis',
  '2.storage.redis.aclUserConfig',
  '2.storage.redis.aclUserConfig.passwordSecretRef',
  '2.storage.redis.sentinelConfig.db',
  '2.storage.redis.sentinelConfig.masterName',
  '2.storage.redis.sentinelConfig.sentinelService',
  '2.storage.type',
  '2.upstreamProviders.name',
  '2.upstreamProviders.oauth2Config',
  '2.upstreamProviders.oidcConfig',
  '2.upstreamProviders.type',
  '2.version.rotation',
)

await checkTables(t, authServerTables)

await t.test('auth-server: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(authServerTables)].sort())
})
