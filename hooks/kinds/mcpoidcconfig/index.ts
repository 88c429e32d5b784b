/** MCPOIDCConfig: settings that validate incoming tokens. */
import { configKind } from '../config-kind.ts'
import type { MCPOIDCConfig, Violation } from '../../../schemas/index.ts'

export const mcpOidcConfig = configKind({
  kind: 'MCPOIDCConfig',
  validate: oidcViolations,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  secrets: ({ spec }) => (spec.inline?.clientSecretRef ? [spec.inline.clientSecretRef] : []),
  caBundles: ({ spec }) => (spec.inline?.caBundleRef ? [spec.inline.caBundleRef] : []),
})

function oidcViolations({ spec }: MCPOIDCConfig): Violation[] {
  const { inline, kubernetesServiceAccount: account } = spec
  return [
    ...urlViolations(inline?.issuer, 'spec.inline.issuer', { isIssuer: true }),
    ...urlViolations(inline?.jwksUrl, 'spec.inline.jwksUrl'),
    ...urlViolations(inline?.introspectionUrl, 'spec.inline.introspectionUrl'),
    ...urlViolations(account?.issuer, 'spec.kubernetesServiceAccount.issuer', { isIssuer: true }),
    ...urlViolations(account?.jwksUrl, 'spec.kubernetesServiceAccount.jwksUrl'),
    ...urlViolations(account?.introspectionUrl, 'spec.kubernetesServiceAccount.introspectionUrl'),
  ]
}

/**
 * Issuers are compared character by character and must not have a query or fragment (RFC 8414, OpenID Connect
 * Discovery).
 */
function urlViolations(
  url: string | undefined,
  path: string,
  { isIssuer = false }: { readonly isIssuer?: boolean } = {},
): Violation[] {
  if (url === undefined) return []
  if (!URL.canParse(url)) return [{ path, message: 'is not an absolute URL' }]
  const { username, password, search, hash } = new URL(url)
  if (username !== '' || password !== '') return [{ path, message: 'must not contain credentials' }]
  if (isIssuer && (search !== '' || hash !== ''))
    return [{ path, message: 'must have neither query nor fragment' }]
  return []
}
