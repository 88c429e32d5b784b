/**
 * Checks the public keys of a client that is declared for the authorization server (private_key_jwt).
 * Source: RFC 7517 section 4; RFC 7518 section 6; RFC 8037 section 2; RFC 9864 (Ed25519 is another name for EdDSA).
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { DeclaredClient } from '../generated/types.ts'
import type { Violation } from '../validation/violations.ts'

type Alg = DeclaredClient['signingAlg']
type Jwk = Readonly<Record<string, unknown>>

/** Members that contain private or symmetric key material (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1). */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const

const fits: Readonly<Record<Alg, (key: KeyObject) => boolean>> = {
  ES256: (key) => key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  ES384: (key) => key.asymmetricKeyDetails?.namedCurve === 'secp384r1',
  RS256: isStrongRsa,
  PS256: isStrongRsa,
  EdDSA: (key) => key.asymmetricKeyType === 'ed25519',
}

/**
 * Verification with a key that has a long modulus and a long exponent takes more than 10 times as long as with a
 * typical key.
 */
function isStrongRsa({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = asymmetricKeyDetails ?? {}
  const isUsual = modulusLength >= 2048 && modulusLength <= 8192 && publicExponent <= 0xffff_ffffn
  return asymmetricKeyType === 'rsa' && isUsual
}

const expected: Readonly<Record<Alg, string>> = {
  ES256: 'an EC key on P-256',
  ES384: 'an EC key on P-384',
  RS256: 'an RSA key of 2048 to 8192 bits with an exponent of at most 32 bits',
  PS256: 'an RSA key of 2048 to 8192 bits with an exponent of at most 32 bits',
  EdDSA: 'an Ed25519 key',
}

/** Returns true when the key contains private or symmetric key material. */
export function hasPrivateMembers(key: Jwk): boolean {
  return privateMembers.some((member) => Object.hasOwn(key, member))
}

/**
 * Returns the reasons why the key at `path` cannot verify assertions that are signed with `alg`; empty for a suitable
 * key.
 */
export function clientKeyViolations(key: Jwk, alg: Alg, path: string): readonly Violation[] {
  const secret = privateMembers.filter((member) => Object.hasOwn(key, member))
  if (secret.length > 0) {
    return secret.map((member) => ({
      path: `${path}.${member}`,
      message: 'must not be set, because it is part of a private key; only public keys are allowed',
    }))
  }
  const { use, key_ops: operations } = key
  if (use !== undefined && use !== 'sig') return [{ path: `${path}.use`, message: 'must be sig' }]
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return [{ path: `${path}.key_ops`, message: 'must contain verify' }]
  const named = key['alg'] === 'Ed25519' ? 'EdDSA' : key['alg']
  if (named !== undefined && named !== alg)
    return [{ path: `${path}.alg`, message: `must be ${alg}, the client's signingAlg` }]
  const parsed = publicKey(key)
  if (parsed === undefined) return [{ path, message: 'is not a valid public key' }]
  return fits[alg](parsed)
    ? []
    : [{ path, message: `must be ${expected[alg]}, because signingAlg is ${alg}` }]
}

function publicKey(key: Jwk): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: 'jwk' })
  } catch {
    return undefined
  }
}
