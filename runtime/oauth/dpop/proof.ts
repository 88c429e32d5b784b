/**
 * Verifies DPoP proofs: JWTs that prove, for one request, that the client possesses the key of its token.
 *
 * jose checks the signature, the algorithm and the type. Only elliptic-curve keys are accepted, because a client
 * chooses its own key and the cost of RSA depends on the key. The caller checks replay (`replay.ts`), and compares
 * `jkt` with the token.
 * Source: RFC 9449 sections 4.2, 4.3 and 7; RFC 7638; RFC 8725.
 */
import { hash } from 'node:crypto'
import { type CryptoKey, errors, importJWK, type JWK, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { isFields, ModuleError } from '../../../schemas/index.ts'
import { skewSec } from '../jwt.ts'

/** Algorithms that proofs may use; published in metadata and challenges. */
export const proofAlgorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const

const maxLength = 8_192
const maxJtiLength = 256
const keyMembers = ['jku', 'x5u', 'x5c'] as const
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

export type ProofRefusalReason =
  | 'missing'
  | 'malformed'
  | 'header'
  | 'signature'
  | 'claims'
  | 'method'
  | 'target'
  | 'time'
  | 'token'
  | 'key'
  | 'nonce'
  | 'replayed'

/**
 * Thrown when the proof must not be accepted. `reason` is for logs. With `nonce`, the client must send a nonce from
 * this server.
 */
export class ProofRefused extends ModuleError {
  readonly reason: ProofRefusalReason
  constructor(reason: ProofRefusalReason, cause?: unknown) {
    super(`DPoP proof refused: ${reason}`, cause === undefined ? {} : { cause })
    this.reason = reason
  }
}

export interface ProofRules {
  /** HTTP method of the request. */
  readonly method: string
  /** Returns true if a normalized URL (`proofTarget`) is a URL of this endpoint. */
  readonly isTarget: (url: string) => boolean
  /** Access token that the request contains. The hash of the access token must be in the proof. */
  readonly accessToken?: string | undefined
  /** Largest difference between the proof's `iat` and the time, in both directions. */
  readonly maxAgeMs: number
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Returns true for a valid nonce. If this is set, the proof must contain a nonce. */
  readonly isNonce?: ((nonce: string) => boolean) | undefined
}

export interface VerifiedProof {
  /** Thumbprint of the proof's key (RFC 7638), base64url. */
  readonly jkt: string
  readonly jti: string
  /** Unix seconds. */
  readonly iat: number
  readonly nonce: string | undefined
}

interface ProofKey {
  readonly key: CryptoKey
  readonly jkt: string
}

/** Keys of recent proofs. The cache key is the encoded header, which a client repeats in each proof. */
const knownKeys = new LRUCache<string, ProofKey>({ max: 1_000 })

/** Returns the verified proof. Rejects with ProofRefused. */
export async function verifyProof(proof: string | undefined, rules: ProofRules): Promise<VerifiedProof> {
  if (proof === undefined || proof === '') throw new ProofRefused('missing')
  const header = proof.slice(0, Math.max(proof.indexOf('.'), 0))
  if (proof.length > maxLength || header === '') throw new ProofRefused('malformed')
  const known = knownKeys.get(header)
  const found = known ?? (await keyOf(header))
  const claims = await verified(proof, found.key, rules)
  if (!known) knownKeys.set(header, found)
  return { jkt: found.jkt, ...checkClaims(claims, rules) }
}

/** Reads the key from an encoded header, and computes its thumbprint. */
async function keyOf(encoded: string): Promise<ProofKey> {
  const header = decoded(encoded)
  const { alg, jwk } = header
  if (keyMembers.some((member) => Object.hasOwn(header, member))) throw new ProofRefused('header')
  if (!proofAlgorithms.some((name) => name === alg) || !isFields(jwk)) throw new ProofRefused('header')
  if (privateMembers.some((member) => Object.hasOwn(jwk, member))) throw new ProofRefused('header')
  const members = thumbprintMembers(jwk)
  try {
    // Imports only the members that the thumbprint covers, so that no other member affects the key.
    const key = await importJWK(members as JWK, String(alg))
    if (key instanceof Uint8Array) throw new ProofRefused('header')
    return { key, jkt: hash('sha256', JSON.stringify(members), 'base64url') }
  } catch (error) {
    throw error instanceof ProofRefused ? error : new ProofRefused('header', error)
  }
}

/** Returns the members of a public key that its thumbprint includes, in the order that RFC 7638 requires. */
function thumbprintMembers(jwk: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const { crv, kty, x, y } = jwk
  const texts = kty === 'EC' ? { crv, kty, x, y } : kty === 'OKP' ? { crv, kty, x } : {}
  const entries = Object.entries(texts)
  if (entries.length === 0) throw new ProofRefused('header')
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (typeof value !== 'string') throw new ProofRefused('header')
      return [name, value]
    }),
  )
}

function decoded(encoded: string): Readonly<Record<string, unknown>> {
  try {
    const header: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString())
    if (isFields(header)) return header
  } catch {
    // The code below reports the error.
  }
  throw new ProofRefused('malformed')
}

async function verified(proof: string, key: CryptoKey, { nowMs }: ProofRules): Promise<JWTPayload> {
  try {
    const options = {
      algorithms: [...proofAlgorithms],
      typ: 'dpop+jwt',
      clockTolerance: skewSec,
      currentDate: new Date(nowMs),
    }
    return (await jwtVerify(proof, key, options)).payload
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) throw new ProofRefused('signature', error)
    if (error instanceof errors.JWTExpired) throw new ProofRefused('time', error)
    throw new ProofRefused(error instanceof errors.JWTClaimValidationFailed ? 'claims' : 'malformed', error)
  }
}

function checkClaims(claims: JWTPayload, rules: ProofRules): Omit<VerifiedProof, 'jkt'> {
  const { jti, iat, nonce, htm, htu, ath } = claims
  if (typeof jti !== 'string' || jti === '' || jti.length > maxJtiLength) throw new ProofRefused('claims')
  if (typeof iat !== 'number' || typeof htm !== 'string' || typeof htu !== 'string')
    throw new ProofRefused('claims')
  if (htm !== rules.method) throw new ProofRefused('method')
  const target = proofTarget(htu)
  if (target === undefined || !rules.isTarget(target)) throw new ProofRefused('target')
  if (Math.abs(rules.nowMs - iat * 1000) > rules.maxAgeMs) throw new ProofRefused('time')
  if (rules.accessToken !== undefined && ath !== hash('sha256', rules.accessToken, 'base64url'))
    throw new ProofRefused('token')
  const given = typeof nonce === 'string' ? nonce : undefined
  if (rules.isNonce && (given === undefined || !rules.isNonce(given))) throw new ProofRefused('nonce')
  return { jti, iat, nonce: given }
}

/**
 * Returns a URL in the form in which targets are compared: normalized, without query, fragment and trailing slash.
 * Returns undefined if `htu` is not an absolute http or https URL.
 */
export function proofTarget(htu: string): string | undefined {
  const url = /^https?:\/\//i.test(htu) ? URL.parse(htu) : null
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
