/**
 * Creates callers from verified claims, and the callers used by servers without authentication.
 *
 * Source: docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth.type).
 */
import { type Caller, callerFacts, localIssuer, makeCaller, type TokenOrigin } from '../net/index.ts'
import { TokenRefused } from '../oauth/index.ts'
import type { TokenClaims } from './prefixes.ts'

const localAudience = 'gatehouse'

/** Returns the caller of all requests when the type is `anonymous`. */
export function anonymousCaller(): Caller {
  return localIdentity('anonymous', 'Anonymous User', { email: 'anonymous@localhost' })
}

/** Returns the caller for the operating system user when the type is `local`. */
export function localCaller(username: string): Caller {
  return localIdentity(username, `Local User: ${username}`)
}

/** Returns the caller that represents the owner's programs, on a server that other users sign in to. */
export function ownerCaller(): Caller {
  const { issuer, subject, claims, displayName } = localIdentity('owner', 'Owner')
  // Policies read these claims, because the owner has no upstream tokens.
  return makeCaller({ issuer, subject, claims, displayName, facts: { kind: 'user', hasUpstreams: false } })
}

function localIdentity(subject: string, name: string, more: Record<string, unknown> = {}): Caller {
  const claims = { sub: subject, iss: localIssuer, aud: localAudience, name, ...more }
  return makeCaller({ issuer: localIssuer, subject, claims, displayName: name })
}

/** Rules for creating a caller from one issuer's claims. */
export interface IdentityRules {
  /** Issuer to use when the claims contain no issuer. */
  readonly issuer: string
  readonly origin: TokenOrigin
  /** Renames the subjects and groups of an additional issuer, or removes groups of other issuers. */
  readonly rename?: ((claims: TokenClaims) => TokenClaims) | undefined
  /** Prefixes of other issuers. A subject that begins with one of these prefixes is rejected. */
  readonly reserved?: readonly string[] | undefined
}

/** Creates a caller from claims. Throws TokenRefused if the claims contain no usable subject. */
export function callerOf(claims: TokenClaims, token: string, rules: IdentityRules): Caller {
  const subject = text(claims['sub'])
  if (subject === undefined) throw new TokenRefused('claims')
  if (rules.reserved?.some((prefix) => subject.startsWith(prefix))) throw new TokenRefused('subject')
  const renamed = rules.rename?.(claims) ?? claims
  const name = text(renamed['sub']) ?? subject
  return makeCaller({
    issuer: text(claims['iss']) ?? rules.issuer,
    subject: name,
    claims: renamed,
    displayName: text(claims['name']) ?? text(claims['email']) ?? name,
    token,
    facts: callerFacts(claims, rules.origin),
  })
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
