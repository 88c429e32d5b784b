/** MCPOIDCConfig: how incoming tokens are validated. */
import { configKind } from '../common/config-kind.ts'
import { oidcReferences } from '../../references/referrers.ts'
import { oidcViolations } from './validate.ts'

export const mcpOidcConfig = configKind({
  kind: 'MCPOIDCConfig',
  referenceFields: ['oidcConfigRef'],
  validate: oidcViolations,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: oidcReferences,
  secrets: ({ spec }) => (spec.inline?.clientSecretRef ? [spec.inline.clientSecretRef] : []),
  caBundles: ({ spec }) => (spec.inline?.caBundleRef ? [spec.inline.caBundleRef] : []),
})
