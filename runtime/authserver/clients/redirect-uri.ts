/**
 * Validates redirect URIs at registration, and matches the redirect URI in a request.
 *
 * URIs are compared as whole strings, except for the port of a loopback address, because native apps open a random port
 * (RFC 8252 section 7.3). Schemes that a browser executes or reads locally are always rejected.
 * Source: RFC 6749 section 3.1.2, RFC 8252 sections 7 and 8.4, RFC 9700 section 4.1.
 */
import { unbracket } from '../../net/index.ts'

const forbiddenSchemes: ReadonlySet<string> = new Set([
  'javascript:',
  'data:',
  'vbscript:',
  'file:',
  'blob:',
  'about:',
  'filesystem:',
  'view-source:',
  'ws:',
  'wss:',
  'ftp:',
])

const maxLength = 2048

/**
 * Returns the reason why the URI cannot be registered, or undefined if it can. A `web` client runs on a server, so it
 * has no loopback address and no private-use scheme (OpenID Connect Registration section 2).
 */
export function redirectUriViolation(uri: string, applicationType: 'native' | 'web'): string | undefined {
  if (uri.length > maxLength) return `must have at most ${maxLength} characters`
  // The parser strips or folds other characters, so two readers could disagree.
  if (!/^[\x21-\x7e]+$/.test(uri) || uri.includes('\\')) return 'must consist of visible ASCII characters'
  if (!URL.canParse(uri)) return 'must be an absolute URI'
  const url = new URL(uri)
  if (uri.includes('#')) return 'must not have a fragment'
  if (forbiddenSchemes.has(url.protocol)) return 'must not use this scheme'
  if (url.username !== '' || url.password !== '') return 'must not contain user information'
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return privateSchemeViolation(url, applicationType)
  // Browsers accept host names that are invalid in DNS. Such a name could alter a policy header.
  if (!/^[\w.-]+$|^\[[\da-f:.]+\]$/i.test(url.hostname)) return 'must have a plain host name'
  if (!beginsWithOrigin(uri, url)) return `must begin with its parsed origin, ${url.origin}`
  if (url.protocol === 'https:') return undefined
  if (!isLoopbackName(url.hostname)) return 'must be https unless it is a loopback address'
  return applicationType === 'web' ? 'must not be a loopback address for a web application' : undefined
}

/**
 * True when the URI begins with the parsed URL's origin, ignoring case. Browsers and libraries parse
 * `https:evil.example/cb` or `https://0x7f.1/` differently, and a user cannot tell where such a URI points.
 */
function beginsWithOrigin(uri: string, { origin }: URL): boolean {
  const rest = uri.slice(origin.length)
  // The parsed origin omits the default port.
  return uri.slice(0, origin.length).toLowerCase() === origin && /^(:80|:443)?([/?]|$)/.test(rest)
}

/** True for a scheme that only applications on the user's machine handle. */
export function usesPrivateScheme(uri: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol } = new URL(uri)
  return protocol !== 'https:' && protocol !== 'http:' && !forbiddenSchemes.has(protocol)
}

/**
 * Private-use schemes should be reverse domain names (RFC 8252 section 7.1). Schemes of known MCP clients are also
 * accepted.
 */
function privateSchemeViolation({ protocol }: URL, applicationType: 'native' | 'web'): string | undefined {
  if (applicationType === 'web') return 'must be https for a web application'
  const scheme = protocol.slice(0, -1)
  if (scheme.includes('.') || knownAppSchemes.has(scheme)) return undefined
  return 'must use a scheme in reverse domain form, such as com.example.app'
}

/** Schemes without a dot that MCP clients are known to register. */
const knownAppSchemes: ReadonlySet<string> = new Set([
  'cursor',
  'vscode',
  'vscode-insiders',
  'vscodium',
  'windsurf',
  'zed',
  'claude',
  'chatgpt',
  'goose',
  'raycast',
  'warp',
  'jetbrains',
])

/** True for localhost, its subdomains, and the literals of RFC 8252. Other 127/8 addresses are not accepted. */
function isLoopbackName(hostname: string): boolean {
  const host = unbracket(hostname).toLowerCase()
  return host === 'localhost' || host.endsWith('.localhost') || host === '127.0.0.1' || host === '::1'
}

/** True when any application on the user's machine could receive the redirect. */
export function isUnownedRedirect(uri: string): boolean {
  return new URL(uri).protocol !== 'https:'
}

/** Returns the host to show to users, or the scheme of a private-use URI. */
export function redirectHost(uri: string): string {
  const url = new URL(uri)
  return /^https?:$/.test(url.protocol) ? url.host : url.protocol
}

/**
 * True when the requested URI is registered. A registration stored by an older version may contain an http(s) URI that
 * does not begin with its own origin; such a URI never matches.
 */
export function matchesRedirectUri(requested: string, registered: readonly string[]): boolean {
  if (
    /^https?:/i.test(requested) &&
    !(URL.canParse(requested) && beginsWithOrigin(requested, new URL(requested)))
  )
    return false
  return registered.some((uri) => uri === requested || equalsExceptPort(requested, uri))
}

const loopback = /^http:\/\/(\[::1\]|127\.0\.0\.1|localhost)(?::(\d{1,5}))?(\/[^#]*|\?[^#]*|)$/i

/** Compares loopback addresses as written, except the port. The pattern excludes userinfo and fragments. */
function equalsExceptPort(requested: string, registered: string): boolean {
  const a = loopback.exec(requested)
  const b = loopback.exec(registered)
  if (!a || !b) return false
  const [, hostA = '', portA = '80', restA = ''] = a
  const [, hostB = '', , restB = ''] = b
  const validPort = Number(portA) >= 1 && Number(portA) <= 65535
  return validPort && hostA.toLowerCase() === hostB.toLowerCase() && restA === restB
}
