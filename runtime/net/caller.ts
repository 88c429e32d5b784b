/**
 * The authenticated client of one request, as every module below `incoming/` sees it.
 *
 * `incoming/` creates it (JWT, introspection, anonymous, local). `token` is the presented credential; it is never
 * logged, and is not serialized.
 *
 * A caller has two keys. `key` identifies the user: client sessions are bound to it, and survive a token refresh.
 * `identityOf` also covers the permissions of the caller: everything that callers share towards backends is keyed by
 * it.
 */
import { hash } from 'node:crypto'

/** Issuer of unverified identities. No real issuer can claim it, because a real issuer is a URL. */
export const localIssuer = 'gatehouse-local'

export interface Caller {
  /** Issuer of the identity; localIssuer for anonymous and local callers. */
  readonly issuer: string
  readonly subject: string
  /** All claims of the token, as received. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Display name for the audit log: name, else e-mail, else subject. */
  readonly displayName: string
  /** The bearer token that was presented; undefined for anonymous and local callers. Not enumerable. */
  readonly token?: string | undefined
  /** Identifies the user for session binding: issuer NUL subject. */
  readonly key: string
}

/** Creates a caller. `token` is hidden from enumeration, JSON and inspection. */
export function makeCaller(from: {
  issuer: string
  subject: string
  claims: Readonly<Record<string, unknown>>
  displayName?: string
  token?: string
}): Caller {
  const caller = {
    issuer: from.issuer,
    subject: from.subject,
    claims: from.claims,
    displayName: from.displayName ?? from.subject,
    key: `${from.issuer}\0${from.subject}`,
  }
  Object.defineProperty(caller, 'token', { value: from.token, enumerable: false })
  return caller
}

/**
 * Claims that differ between two tokens of the same login and grant nothing. All other claims are part of the
 * identity, because any of them may determine what a backend grants: scopes, roles, groups, the client (`azp`,
 * `client_id`), the login (`sid`, `tsid`).
 */
const perTokenClaims: ReadonlySet<string> = new Set([
  'iat',
  'exp',
  'nbf',
  'jti',
  'auth_time',
  'nonce',
  'at_hash',
  'c_hash',
  's_hash',
  'expires_in',
  'aio',
  'rh',
  'uti',
  'pwd_exp',
])

/** Claims that contain a space-separated list. */
const listClaims: ReadonlySet<string> = new Set(['scope', 'scp'])

const identities = new WeakMap<Caller, string>()

/**
 * Returns a digest of the caller and its permissions: issuer, subject, and all claims that are the same in every
 * token of a login. Tokens of one login have the same identity; tokens of one user with different scopes, roles or
 * clients do not. The digest does not contain the token, and is computed once per caller.
 */
export function identityOf(caller: Caller): string {
  const known = identities.get(caller)
  if (known !== undefined) return known
  const { issuer, subject, claims } = caller
  const granted = Object.entries(claims).filter(([name]) => !perTokenClaims.has(name))
  const parts = [
    issuer,
    subject,
    ...granted.map(([name, value]) => `${name}=${claimText(name, value)}`).sort(),
  ]
  const identity = hash('sha256', JSON.stringify(parts), 'base64url')
  identities.set(caller, identity)
  return identity
}

/** Returns the same text for equivalent values: the order of members and list items is ignored. */
function claimText(name: string, value: unknown): string {
  if (typeof value === 'string' && listClaims.has(name)) return claimText('', value.split(' '))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  if (Array.isArray(value))
    return `[${value
      .map((item) => claimText('', item))
      .sort()
      .join()}]`
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}:${claimText('', member)}`,
  )
  return `{${members.sort().join()}}`
}
