/**
 * MCPExternalAuthConfig: authentication to external services.
 *
 * The type `obo` is checked during reconciliation instead of at admission. Without a handler, the reason is
 * EnterpriseRequired; with a handler, the rules of the type apply.
 */
import type { SyncFailure } from '../../sync/conditions.ts'
import { configKind } from '../config-kind.ts'
import type { SyncContext } from '../../sync/context.ts'
import {
  checkUserIdentities,
  enterpriseRequired,
  externalAuthSecrets,
  externalAuthViolations,
  oboViolations,
  rereadAuthSecrets,
  authServerWarnings,
} from '../../externalauth/index.ts'
import { upstreamPairFailure } from '../../runtime-config/auth-server.ts'
import { authServerBundles, rereadBundles } from '../../runtime-config/config-maps.ts'
import type { MCPExternalAuthConfig } from '../../../schemas/index.ts'

export const mcpExternalAuthConfig = configKind({
  kind: 'MCPExternalAuthConfig',
  validate: externalAuthViolations,
  warnings: externalAuthWarnings,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  secrets: externalAuthSecrets,
  rereadSecrets: rereadAuthSecrets,
  caBundles: ({ spec }) => (spec.embeddedAuthServer ? authServerBundles(spec.embeddedAuthServer) : []),
  rereadBundles: ({ spec }) => (spec.embeddedAuthServer ? rereadBundles(spec.embeddedAuthServer) : []),
  check,
})

function check(context: SyncContext<'MCPExternalAuthConfig'>): SyncFailure | undefined {
  const { spec } = context.parent
  const server = spec.embeddedAuthServer
  if (server) {
    checkUserIdentities(context.conditions, server)
    return upstreamPairFailure(context, server, 'spec.embeddedAuthServer')
  }
  if (spec.type !== 'obo') return undefined
  if (!context.settings.enableObo) return { reason: 'EnterpriseRequired', message: enterpriseRequired }
  const violations = oboViolations(spec.obo)
  if (violations.length === 0) return undefined
  return {
    reason: 'InvalidConfig',
    message: violations.map(({ path, message }) => `${path}: ${message}`).join('; '),
  }
}

function externalAuthWarnings({ spec }: MCPExternalAuthConfig): readonly string[] {
  if (spec.type === 'unauthenticated') return ['type unauthenticated: no credentials are sent to the backend']
  return spec.embeddedAuthServer ? authServerWarnings(spec.embeddedAuthServer, 'embeddedAuthServer') : []
}
