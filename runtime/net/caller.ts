/**
 * The authenticated client that sent a request, as every module below `incoming/` sees it.
 *
 * `incoming/` creates it (JWT, introspection, anonymous, local). `token` is the presented credential, which is never
 * logged or serialized.
 *
 * A caller has two keys. `key` identifies the user: client sessions are bound to `key` and therefore survive a token
 * refresh. `identityOf` also covers the caller's permissions, and keys every backend resource that callers share.
 */
import { hash } from 'node:crypto'

/** Issuer for unverified identities. A real issuer cannot have this value, because real issuers are URLs. */
export const localIssuer = 'gatehouse-local'

/** Facts about a caller's token that policies can read in addition to its claims. */
export interface CallerFacts {
  /** `machine` for a client that acts on its own behalf, without a user. */
  readonly kind: 'user' | 'machine'
  /** The OAuth client that received the token. */
  readonly clientId?: string | undefined
  /** How the client authenticated; only the embedded authorization server reports it. */
  readonly authMethod?: string | undefined
  /**
   * The client that currently acts for the user (outermost `act`). For an issuer other than the embedded authorization
   * server, the issuer and `#` precede the actor's subject.
   */
  readonly actor?: string | undefined
  /** True for a user who signed in at the embedded authorization server, which stores upstream tokens for them. */
  readonly hasUpstreams: boolean
}

export interface Caller {
  /** Issuer of the identity; localIssuer for anonymous and local callers. */
  readonly issuer: string
  readonly subject: string
  /** All claims in the token, as received. */
  readonly claims: Readonly<Record<string, unknown>>
  /**
   * Display name for the audit log: the name, the email address if there is no name, or the subject if there is
   * neither.
   */
  readonly displayName: string
  /** The presented bearer token; undefined for anonymous and local callers. Not enumerable. */
  readonly token?: string | undefined
  /** Identifies the user, and the actor if there is one, for session binding: issuer, NUL, subject, NUL, actor. */
  readonly key: string
  /** Facts about the token; undefined for callers without a token. */
  readonly facts?: CallerFacts | undefined
}

/** Creates a caller. `token` is hidden from enumeration, JSON and inspection. */
export function makeCaller(from: {
  issuer: string
  subject: string
  claims: Readonly<Record<string, unknown>>
  displayName?: string
  token?: string
  facts?: CallerFacts | undefined
}): Caller {
  const caller = {
    issuer: from.issuer,
    subject: from.subject,
    claims: from.claims,
    displayName: from.displayName ?? from.subject,
    key: [from.issuer, from.subject, from.facts?.actor].filter((part) => part !== undefined).join('\0'),
    ...(from.facts && { facts: from.facts }),
  }
  Object.defineProperty(caller, 'token', { value: from.token, enumerable: false })
  return caller
}

/**
 * Claims that differ between tokens from the same login and do not grant any access. All other claims are part of the
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
 * Returns a digest of the caller and its permissions. The digest covers the issuer, the subject, and all claims that
 * every token from one login shares. Tokens from one login have the same identity. Tokens of one user have different
 * identities if their scopes, roles or clients differ. The digest does not contain the token, and is computed once per
 * caller.
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

/** Returns the same string for equivalent values, ignoring the order of members and list items. */
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
