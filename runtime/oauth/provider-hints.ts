/**
 * Nonstandard requirements of identity providers for a login. Contains only quirks that require code. Quirks that users
 * only need to be informed of are in runtime/tools/doctor/profiles.
 *
 * Used by the proxy (--remote-auth-provider) and by the authorization server's upstreams (provider). Documented in
 * docs/guides/proxy.md and docs/guides/authorization-server.md.
 */
import { isFields } from '../../schemas/index.ts'
import type { ClientAuthMethod, OAuthClient } from './client/client.ts'

export interface ProviderHint {
  /**
   * `audience`: send the resource in a parameter of that name. `omit`: do not send the resource. Default: send
   * `resource` (RFC 8707).
   */
  readonly resource?: 'omit' | 'audience'
  /** Parameters for the authorization request. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /**
   * Scope that the provider requires for a refresh token. `none`: no such scope exists, and the provider rejects
   * offline_access.
   */
  readonly offlineScope?: 'offline_access' | 'refresh_token' | 'none'
  /** Name of the scopes parameter, instead of `scope`. */
  readonly scopeParamName?: string
  /** Method with which a client that has a secret authenticates at the token endpoint. */
  readonly clientAuth?: ClientAuthMethod
  /** True when the provider supports PKCE with S256 without advertising it. */
  readonly silentPkce?: true
  /**
   * Member of the token response that contains the user's tokens after a login. After a refresh, the tokens are
   * top-level members. In these responses, `token_type` contains the kind of user, because all tokens are bearer
   * tokens.
   */
  readonly tokensIn?: string
}

const providerHints = {
  entra: { resource: 'omit', offlineScope: 'offline_access', silentPkce: true },
  okta: { offlineScope: 'offline_access' },
  auth0: { resource: 'audience', offlineScope: 'offline_access' },
  google: { authorizeParams: { access_type: 'offline', prompt: 'consent' }, offlineScope: 'none' },
  github: { clientAuth: 'client_secret_post' },
  atlassian: {
    authorizeParams: { audience: 'api.atlassian.com', prompt: 'consent' },
    offlineScope: 'offline_access',
    clientAuth: 'client_secret_post',
  },
  slack: { scopeParamName: 'user_scope', offlineScope: 'none', tokensIn: 'authed_user' },
  salesforce: { offlineScope: 'refresh_token' },
  snowflake: { offlineScope: 'refresh_token' },
  cognito: { silentPkce: true, offlineScope: 'none' },
} as const satisfies Readonly<Record<string, ProviderHint>>

export type ProviderId = keyof typeof providerHints

export const providerIds: readonly string[] = Object.keys(providerHints)

export function hintFor(id: string | undefined): ProviderHint | undefined {
  return id !== undefined && isProviderId(id) ? providerHints[id] : undefined
}

export function isProviderId(id: string): id is ProviderId {
  return Object.hasOwn(providerHints, id)
}

/**
 * Returns the scopes, including the provider's scope for refresh tokens. An empty list stays empty: the provider then
 * chooses the scopes.
 */
export function hintedScopes(hint: ProviderHint | undefined, scopes: readonly string[]): readonly string[] {
  const { offlineScope } = hint ?? {}
  if (offlineScope === undefined || scopes.length === 0) return scopes
  const others = scopes.filter((scope) => scope !== 'offline_access' && scope !== offlineScope)
  return offlineScope === 'none' ? others : [...others, offlineScope]
}

/**
 * Returns the parameters for an authorization request. `prompt` combines the client's value and the provider's value.
 */
export function hintedParams(
  hint: ProviderHint | undefined,
  asked: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const own = hint?.authorizeParams ?? {}
  const prompts = new Set([asked['prompt'], own['prompt']].flatMap((prompt) => prompt?.split(' ') ?? []))
  return { ...asked, ...own, ...(prompts.size > 0 && { prompt: [...prompts].join(' ') }) }
}

/**
 * Returns a function that converts the provider's token responses to standard responses; undefined when they are
 * already standard.
 */
export function hintedTokens(
  hint: ProviderHint | undefined,
): ((body: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>) | undefined {
  const { tokensIn } = hint ?? {}
  if (tokensIn === undefined) return undefined
  return (body) => {
    const nested = body[tokensIn]
    const isNested = isFields(nested) && typeof nested['access_token'] === 'string'
    return { ...(isNested ? nested : body), token_type: 'Bearer' }
  }
}

/**
 * Returns the client with the provider's authentication method. A method that was fixed at registration takes
 * precedence.
 */
export function hintedClient(hint: ProviderHint | undefined, client: OAuthClient): OAuthClient {
  const authMethod = client.authMethod ?? hint?.clientAuth
  return client.clientSecret === undefined || authMethod === undefined ? client : { ...client, authMethod }
}
