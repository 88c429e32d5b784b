/** spec.config of VirtualMCPServer: every field, default, bound and rule. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { citedIds } from '../../../requirements/index.ts'
import { checkTables, idsOf } from '../tables/check.ts'
import { vmcpConfigTables } from '../tables/vmcp-config.ts'

proves(
  '3.config.aggregation.conflictResolution',
  '3.config.aggregation.conflictResolutionConfig.prefixFormat',
  '3.config.aggregation.tools.workload',
  '3.config.backends.caBundlePath',
  '3.config.backends.type',
  '3.config.backends.url',
  '3.config.incomingAuth.authz.groupEntityType',
  '3.config.incomingAuth.oidc.clientId',
  '3.config.incomingAuth.authz.type',
  '3.config.operational.timeouts.perWorkload',
  '3.config.outgoingAuth.headerInjection.headerValue',
  '3.config.outgoingAuth.headerInjection.headerValueEnv',
  '3.config.outgoingAuth.source',
  '3.config.outgoingAuth.strategy.type',
  '3.config.passthroughHeaders.restricted',
  '3.limit.audit.maxDataSize',
  '3.limit.circuitBreaker',
  '3.limit.health',
  '3.limit.optimizer.embeddingServiceTimeout',
  '3.limit.optimizer.hybridSearchSemanticRatio',
  '3.limit.optimizer.maxToolsToReturn',
  '3.limit.optimizer.semanticDistanceThreshold',
  '3.limit.telemetry.samplingRate',
  '3.limit.timeouts.default',
  '3.version.useLegacyAttributes',
)

await checkTables(t, vmcpConfigTables)

await t.test('vmcp-config: the requirements of the tables are cited in this file', async (t) => {
  const cited = citedIds(readFileSync(import.meta.filename, 'utf8'))
  t.same([...cited].sort(), [...idsOf(vmcpConfigTables)].sort())
})
