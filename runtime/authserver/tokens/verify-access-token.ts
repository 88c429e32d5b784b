/**
 * Verifies access tokens for the server's own endpoints: userinfo, introspection and revocation.
 *
 * Requires a signature made with a key in the key ring, the exact issuer, a served audience, and the type `at+jwt`.
 * Also requires a live grant, or a client or binding in the configuration. A delegated token requires both.
 * runtime/incoming verifies the callers of MCP endpoints with the same keys.
 * Source: RFC 9068 section 4, RFC 8725.
 */
import { createLocalJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { isFields } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import type { Caller } from '../../net/index.ts'
import { readConfirmation } from '../../oauth/index.ts'
import { count, list, maybe, type Of, record, type RecordShape, text } from '../model/codec.ts'
import { assertedClaims, isAsserted } from './asserted-tokens.ts'
import { type DelegatedTokens, isDelegated } from './delegated-tokens.ts'
import type { KeyRing } from './key-ring.ts'
import { machineClaims, type MachineTokens } from './machine-tokens.ts'
import { sessionClaims } from './session-claims.ts'
import type { Sessions } from './sessions.ts'

/** Accepts any object, because the liveness check reads the chain. */
const actClaim: RecordShape<object> = (value) => (isFields(value) ? value : undefined)

const members = {
  /** Session and grant. Absent in a machine's token. */
  tsid: maybe(text),
  gid: maybe(text),
  sub: text,
  client_id: text,
  scope: text,
  aud: list(text),
  exp: count,
  iat: count,
  jti: text,
  auth_time: maybe(count),
  /** Present only in a delegated token. */
  act: maybe(actClaim),
  session_client_id: maybe(text),
  /** Present only in a token that was issued in exchange for a token of a trusted issuer. */
  exchange_policy: maybe(text),
  /** Present only in a token that was issued for an identity assertion (ID-JAG). */
  binding_id: maybe(text),
  /** Present in a token that is bound to a key or a certificate. */
  cnf: maybe(readConfirmation),
}
const claims = record(members)
export type AccessTokenClaims = Of<typeof members>

interface LivenessParts {
  readonly sessions: Sessions
  readonly machineTokens: MachineTokens
  readonly delegatedTokens: DelegatedTokens
}

interface VerifierContext extends LivenessParts {
  readonly config: AuthServerConfig
  readonly keys: () => KeyRing
  readonly now: () => number
}

/** One set per ring, because a set caches its imported keys. */
const keySets = new WeakMap<KeyRing, JWTVerifyGetKey>()

function keySetOf(ring: KeyRing): JWTVerifyGetKey {
  const known = keySets.get(ring)
  if (known) return known
  const made = createLocalJWKSet(ring.jwks)
  keySets.set(ring, made)
  return made
}

/**
 * Returns the claims of a valid token, otherwise undefined. With `evenExpired`, which revocation uses, the expiry is
 * ignored.
 */
export async function verifyAccessToken(
  token: string,
  context: VerifierContext,
  options: { readonly evenExpired?: boolean } = {},
): Promise<AccessTokenClaims | undefined> {
  const { config, keys, now } = context
  const ring = keys()
  let payload: JWTPayload
  try {
    const verified = await jwtVerify(token, keySetOf(ring), {
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
  return read && (await isLiveToken({ claims: read, subject: read.sub }, context)) ? read : undefined
}

/**
 * True while everything on which a token of this server depends is live: for a machine, its client or binding; for
 * another identity provider's user, the binding and the client; for any other user, the grant. A delegated token also
 * depends on the acting clients.
 */
export async function isLiveToken(
  token: Pick<Caller, 'claims' | 'subject'>,
  { sessions, machineTokens, delegatedTokens }: LivenessParts,
): Promise<boolean> {
  if (isAsserted(token.claims)) {
    const asserted = assertedClaims(token)
    return asserted !== undefined && machineTokens.isIssuedTo(asserted.dependsOn, asserted)
  }
  const machine = machineClaims(token)
  if (machine) return machineTokens.isLive(machine)
  const session = sessionClaims(token)
  if (session && !(await sessions.isLive(session))) return false
  return isDelegated(token.claims) ? delegatedTokens.isLive(token.claims) : session !== undefined
}
