/**
 * Creates callers from verified claims, and the callers used by servers without authentication.
 *
 * Source: docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth.type).
 */
import { type Caller, localIssuer, makeCaller } from '../net/index.ts'
import { TokenRefused } from '../oauth/index.ts'

const localAudience = 'gatehouse'

/** Returns the caller of all requests when the type is `anonymous`. */
export function anonymousCaller(): Caller {
  return localIdentity('anonymous', 'Anonymous User', { email: 'anonymous@localhost' })
}

/** Returns the caller for the operating system user when the type is `local`. */
export function localCaller(username: string): Caller {
  return localIdentity(username, `Local User: ${username}`)
}

function localIdentity(subject: string, name: string, more: Record<string, unknown> = {}): Caller {
  const claims = { sub: subject, iss: localIssuer, aud: localAudience, name, ...more }
  return makeCaller({ issuer: localIssuer, subject, claims, displayName: name })
}

/**
 * Creates a caller from claims. Throws TokenRefused if they contain no subject. `issuer` is the fallback if they
 * contain no issuer.
 */
export function callerOf(claims: Readonly<Record<string, unknown>>, token: string, issuer: string): Caller {
  const subject = text(claims['sub'])
  if (subject === undefined) throw new TokenRefused('claims')
  const displayName = text(claims['name']) ?? text(claims['email']) ?? subject
  return makeCaller({ issuer: text(claims['iss']) ?? issuer, subject, claims, displayName, token })
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
