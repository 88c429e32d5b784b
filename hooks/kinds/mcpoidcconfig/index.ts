/** MCPOIDCConfig: how incoming tokens are validated. */
import { configKind } from '../shared/config-kind.ts'
import { oidcReferences } from '../../references/referrers.ts'

export const mcpOidcConfig = configKind({
  kind: 'MCPOIDCConfig',
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: oidcReferences,
  secrets: ({ spec }) => (spec.inline?.clientSecretRef ? [spec.inline.clientSecretRef] : []),
  caBundle: ({ spec }) => spec.inline?.caBundleRef,
})
