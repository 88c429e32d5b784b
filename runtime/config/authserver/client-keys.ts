/**
 * Public keys that verify a client's assertions (private_key_jwt), as JSON Web Keys.
 * Source: RFC 7517 section 4; RFC 7518 section 6; RFC 8037 section 2; RFC 9864 (Ed25519 is another name of EdDSA).
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { AssertionAlg, JsonRecord } from '../../oauth/index.ts'

/** Algorithms of client assertions. */
export const assertionAlgs = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'] as const satisfies AssertionAlg[]

/** Members that contain private or symmetric key material (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1). */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

const fits: Record<AssertionAlg, (key: KeyObject) => boolean> = {
  ES256: (key) => key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  ES384: (key) => key.asymmetricKeyDetails?.namedCurve === 'secp384r1',
  RS256: isStrongRsa,
  PS256: isStrongRsa,
  EdDSA: (key) => key.asymmetricKeyType === 'ed25519',
}

function isStrongRsa({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  return asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
}

const expected: Record<AssertionAlg, string> = {
  ES256: 'an EC key on P-256',
  ES384: 'an EC key on P-384',
  RS256: 'an RSA key of at least 2048 bits',
  PS256: 'an RSA key of at least 2048 bits',
  EdDSA: 'an Ed25519 key',
}

/** Returns why the key cannot verify assertions with one of these algorithms, or undefined if it can. */
export function clientKeyViolation(key: JsonRecord, algs: readonly AssertionAlg[]): string | undefined {
  if (hasPrivateMembers(key)) return 'must be a public key, without private members'
  if (key['use'] !== undefined && key['use'] !== 'sig') return 'must have the use sig'
  const operations = key['key_ops']
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return 'must have the key operation verify'
  const named = key['alg'] === 'Ed25519' ? 'EdDSA' : key['alg']
  const allowed = algs.filter((alg) => named === undefined || alg === named)
  if (allowed.length === 0) return `must have the alg ${algs.join(', ')}`
  try {
    const parsed = createPublicKey({ key, format: 'jwk' })
    if (allowed.some((alg) => fits[alg](parsed))) return undefined
    return `must be ${[...new Set(allowed.map((alg) => expected[alg]))].join(' or ')}`
  } catch {
    return 'is not a valid public key'
  }
}

/** True when the key contains private or symmetric key material. */
export function hasPrivateMembers(key: JsonRecord): boolean {
  return privateMembers.some((member) => Object.hasOwn(key, member))
}
