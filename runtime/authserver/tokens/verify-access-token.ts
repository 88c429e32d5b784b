/**
 * Verifies access tokens of this server itself: for userinfo, introspection and revocation.
 *
 * Signature by a held key, exact issuer, a served audience, type `at+jwt`, algorithms of the held keys only, and a
 * grant that is still alive. Callers of MCP endpoints are verified by runtime/incoming with the same keys.
 * Source: RFC 9068 section 4, RFC 8725.
 */
import { createLocalJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { AuthServerConfig } from '../../config/index.ts'
import { count, list, maybe, type Of, record, text } from '../model/codec.ts'
import type { KeyRing } from './key-ring.ts'
import type { Sessions } from './sessions.ts'

const members = {
  tsid: text,
  gid: text,
  sub: text,
  client_id: text,
  scope: text,
  aud: list(text),
  exp: count,
  iat: count,
  jti: text,
  auth_time: maybe(count),
}
const claims = record(members)
export type AccessTokenClaims = Of<typeof members>

export interface VerifyParts {
  readonly config: AuthServerConfig
  readonly keys: () => KeyRing
  readonly sessions: Sessions
  readonly now: () => number
}

/** One set for each ring, because it keeps its imported keys. */
const keySets = new WeakMap<KeyRing, JWTVerifyGetKey>()

function keySet(ring: KeyRing): JWTVerifyGetKey {
  const known = keySets.get(ring)
  if (known) return known
  const made = createLocalJWKSet(ring.jwks)
  keySets.set(ring, made)
  return made
}

/** The claims of a good token; undefined for any other. `expired` tokens count when only their origin matters. */
export async function verifyAccessToken(
  token: string,
  parts: VerifyParts,
  options: { readonly evenExpired?: boolean } = {},
): Promise<AccessTokenClaims | undefined> {
  const { config, keys, now } = parts
  const ring = keys()
  let payload: JWTPayload
  try {
    const verified = await jwtVerify(token, keySet(ring), {
      issuer: config.issuer,
      audience: [...config.allowedAudiences],
      typ: 'at+jwt',
      algorithms: ring.all.map((key) => key.alg),
      requiredClaims: ['exp', 'sub'],
      currentDate: options.evenExpired ? new Date(0) : new Date(now()),
    })
    payload = verified.payload
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined
    throw error
  }
  const read = claims(payload)
  return read && (await parts.sessions.isLive(read)) ? read : undefined
}
