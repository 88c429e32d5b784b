/**
 * The addresses of this server, derived from the issuer, the advertised base and the callbacks.
 *
 * Endpoints are under the issuer. Pages that set cookies are on the callbacks' host. A cookie belongs to one host, and
 * the login must end in the browser that began it.
 * Source: docs/reference/specification/external-auth.md#endpoints, Endpoints; RFC 8414 section 3; OpenID Connect
 * Discovery section 4.
 */
import type { AuthServerConfig } from '../../config/index.ts'

export interface Urls {
  readonly issuer: string
  /** The issuer's path without a trailing slash, or '' for a bare host. */
  readonly base: string
  readonly authorize: string
  readonly token: string
  readonly register: string
  readonly revoke: string
  readonly introspect: string
  readonly userinfo: string
  readonly jwks: string
  readonly consent: string
  readonly confirm: string
  readonly accounts: string
  /** True for https, where cookies have the `__Host-` prefix and Secure. */
  readonly secure: boolean
  /** Origin of the pages. */
  readonly pageOrigin: string
}

export const paths = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  introspect: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
  consent: '/oauth/consent',
  confirm: '/oauth/confirm',
  accounts: '/oauth/accounts',
  callback: '/oauth/callback',
  jwks: '/.well-known/jwks.json',
} as const

export function makeUrls(config: AuthServerConfig): Urls {
  const { issuer } = config
  const callback = new URL(config.upstreams[0]?.redirectUri ?? issuer)
  // {base}/oauth/callback: the pages use the callback's base, because the same proxy forwards both.
  const pageBase = callback.pathname.endsWith(paths.callback)
    ? callback.pathname.slice(0, -paths.callback.length)
    : pathOf(issuer)
  const pages = `${callback.origin}${pageBase}`
  return {
    issuer,
    base: pathOf(issuer),
    authorize: `${config.authorizationEndpointBaseUrl ?? issuer}${paths.authorize}`,
    token: `${issuer}${paths.token}`,
    register: `${issuer}${paths.register}`,
    revoke: `${issuer}${paths.revoke}`,
    introspect: `${issuer}${paths.introspect}`,
    userinfo: `${issuer}${paths.userinfo}`,
    jwks: `${issuer}${paths.jwks}`,
    consent: `${pages}${paths.consent}`,
    confirm: `${pages}${paths.confirm}`,
    accounts: `${pages}${paths.accounts}`,
    secure: callback.protocol === 'https:',
    pageOrigin: callback.origin,
  }
}

/** Returns the client's redirect URI with these parameters and the issuer (RFC 9207) appended to its query. */
export function buildClientRedirect(
  redirectUri: string,
  issuer: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) fields.set(name, value)
  fields.set('iss', issuer)
  // Avoids the URL parser, which rewrites private-use schemes and the client's own parameters.
  const joint = redirectUri.includes('?') ? (/[?&]$/.test(redirectUri) ? '' : '&') : '?'
  return `${redirectUri}${joint}${fields.toString()}`
}

function pathOf(url: string): string {
  return new URL(url).pathname.replace(/\/+$/, '')
}
