/**
 * The token that identifies the user in an exchange: the caller's own token, or a token from an upstream provider.
 *
 * Source: docs/reference/specification/external-auth.md (subjectProviderName, subjectTokenType); RFC 8693 section 3.
 */
import { GatehouseError } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import { idTokenType } from '../oauth/index.ts'
import type { UpstreamTokens } from './strategy.ts'

export const tokenTypes = {
  access_token: 'urn:ietf:params:oauth:token-type:access_token',
  id_token: idTokenType,
  jwt: 'urn:ietf:params:oauth:token-type:jwt',
} as const

const byName = new Map<string, string>([
  ['', tokenTypes.access_token],
  ...Object.entries(tokenTypes),
  ...Object.values(tokenTypes).map((urn) => [urn, urn] as const),
])

/**
 * Returns the URN for a short or full name. An empty name stands for the access token. Returns undefined for an unknown
 * name.
 */
export function tokenTypeUrn(name: string | undefined): string | undefined {
  return byName.get(name ?? '')
}

export interface SubjectToken {
  readonly provider: string | undefined
  /** URN. For the id_token type, the upstream's ID token is used; otherwise, its access token is used. */
  readonly tokenType: string
}

/**
 * Returns the subject token. Rejects with GatehouseError: SUBJECT_REFUSED when the caller presented no token,
 * UPSTREAM_NOT_CONNECTED when the caller has not connected the provider, and BACKEND_AUTH_FAILED when the provider has
 * no token of this type. Also rejects with errors from `upstream`.
 */
export async function subjectToken(
  caller: Caller,
  subject: SubjectToken,
  upstream: UpstreamTokens | undefined,
  signal?: AbortSignal,
): Promise<string> {
  const { provider } = subject
  if (!provider) {
    if (caller.token !== undefined) return caller.token
    throw new GatehouseError('SUBJECT_REFUSED', {
      detail: 'the request has no access token to authenticate to the backend',
    })
  }
  const tokens = await upstream?.get(caller, provider, signal)
  const token = subject.tokenType === tokenTypes.id_token ? tokens?.idToken : tokens?.accessToken
  if (token) return token
  if (tokens) {
    throw new GatehouseError('BACKEND_AUTH_FAILED', {
      detail: `provider ${provider} issued no ID token, which the exchange requires (subjectTokenType)`,
    })
  }
  const detail = (await upstream?.isWithheld?.(caller, provider))
    ? `the user's groups do not select ${provider}: the user cannot connect it`
    : `the user has not connected ${provider}: ${accountAdvice('connect', provider, upstream?.accountsUrl)}`
  throw new GatehouseError('UPSTREAM_NOT_CONNECTED', { detail })
}

/**
 * Calls `use` with the subject token. When the token is rejected and came from an upstream provider, calls `use` once
 * more with a renewed token. Rejects with errors from `subjectToken` and `use`.
 */
export async function withSubjectToken<T>(
  caller: Caller,
  subject: SubjectToken,
  {
    upstream,
    signal,
  }: { readonly upstream: UpstreamTokens | undefined; readonly signal?: AbortSignal | undefined },
  use: (token: string) => Promise<T>,
): Promise<T> {
  const token = await subjectToken(caller, subject, upstream, signal)
  try {
    return await use(token)
  } catch (error) {
    const isRefused = error instanceof GatehouseError && error.code === 'SUBJECT_REFUSED'
    const { provider } = subject
    if (!isRefused || !provider) throw error
    // The provider renews an ID token together with its access token.
    const isIdToken = subject.tokenType === tokenTypes.id_token
    const accessToken = isIdToken ? (await upstream?.get(caller, provider, signal))?.accessToken : token
    if (accessToken === undefined || !upstream?.refused?.(caller, provider, accessToken)) throw error
    return use(await subjectToken(caller, subject, upstream, signal))
  }
}

/** Returns advice for the user about a provider. Models relay this text to the user. */
export function accountAdvice(
  action: 'connect' | 'renew',
  provider: string,
  accountsUrl: string | undefined,
): string {
  return accountsUrl === undefined
    ? 'ask the user to sign in again'
    : `ask the user to open ${accountsUrl} and ${action} ${provider} there, then try again`
}
