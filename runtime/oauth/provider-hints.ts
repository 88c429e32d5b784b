/**
 * What a login at certain identity providers needs beyond the standards. Only quirks that need an action stand here; what is
 * merely worth knowing is in runtime/doctor/profiles. Documented one by one in docs/guides/proxy.md.
 */

export interface ProviderHint {
  /** `audience`: the resource is sent under that name instead. Default: `resource` is sent (RFC 8707). */
  readonly resource?: 'omit' | 'audience'
  /** Parameters of the authorization request. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /** Without it there is no refresh token, and metadata does not always say so. */
  readonly offlineAccess?: true
  /** Supports PKCE with S256 and does not announce it. */
  readonly silentPkce?: true
}

const providerHints = {
  entra: { resource: 'omit', offlineAccess: true, silentPkce: true },
  okta: { offlineAccess: true },
  auth0: { resource: 'audience', offlineAccess: true },
  google: { authorizeParams: { access_type: 'offline', prompt: 'consent' } },
  atlassian: {
    authorizeParams: { audience: 'api.atlassian.com', prompt: 'consent' },
    offlineAccess: true,
  },
  cognito: { silentPkce: true },
} as const satisfies Readonly<Record<string, ProviderHint>>

export type ProviderId = keyof typeof providerHints

export const providerIds: readonly string[] = Object.keys(providerHints)

export function hintFor(id: string | undefined): ProviderHint | undefined {
  return id !== undefined && isProviderId(id) ? providerHints[id] : undefined
}

export function isProviderId(id: string): id is ProviderId {
  return Object.hasOwn(providerHints, id)
}
