/** MCPOIDCConfig: how incoming tokens are validated. */
import type { MCPOIDCConfig } from '../../../schemas/index.ts'
import { configKind } from '../../config-kind.ts'
import { oidcReferences } from '../../referrers.ts'

export const mcpOidcConfig = configKind<MCPOIDCConfig>({
  kind: 'MCPOIDCConfig',
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: oidcReferences,
  secrets: ({ spec }) => (spec.inline?.clientSecretRef ? [spec.inline.clientSecretRef] : []),
  caBundle: ({ spec }) => spec.inline?.caBundleRef,
})
