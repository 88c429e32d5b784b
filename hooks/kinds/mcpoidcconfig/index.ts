/** MCPOIDCConfig: how incoming tokens are validated. */
import { configKind } from '../config-kind.ts'
import { oidcViolations } from './validate.ts'

export const mcpOidcConfig = configKind({
  kind: 'MCPOIDCConfig',
  validate: oidcViolations,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  secrets: ({ spec }) => (spec.inline?.clientSecretRef ? [spec.inline.clientSecretRef] : []),
  caBundles: ({ spec }) => (spec.inline?.caBundleRef ? [spec.inline.caBundleRef] : []),
})
