/**
 * Reads the private key that a client signs its assertions with (private_key_jwt).
 * Source: RFC 7523 section 2.2; RFC 7518 section 3.1; RFC 8037.
 */
import { createPrivateKey, type JsonWebKey, type KeyObject, type webcrypto } from 'node:crypto'
import { invalidConfig } from '../../../schemas/index.ts'

export const assertionAlgs = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'] as const

export type AssertionAlg = (typeof assertionAlgs)[number]

export interface ClientKey {
  readonly key: webcrypto.CryptoKey
  readonly alg: AssertionAlg
  /** The key id, if the key is a JWK with a key id; otherwise undefined. */
  readonly kid?: string
}

const importParameters: Record<AssertionAlg, Parameters<KeyObject['toCryptoKey']>[0]> = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
}

/**
 * Returns the key in `text`: PEM (PKCS#8, PKCS#1 or SEC1) or one JWK. `alg` chooses between RS256 and PS256 for an RSA
 * key; default RS256. Throws INVALID_CONFIG with `field` when the text is not a supported key, or when the key cannot
 * sign with `alg`.
 */
export function readClientKey(text: string, field: string, alg?: AssertionAlg): ClientKey {
  const { key, kid } = parseKey(text.trim(), field)
  const own = algorithmOf(key)
  if (own === undefined) {
    throw invalidConfig(
      `${field}: the key must be an EC key on P-256 or P-384, an RSA key of at least 2048 bits, or an Ed25519 key`,
    )
  }
  const chosen = own === 'RS256' && alg === 'PS256' ? alg : own
  if (alg !== undefined && alg !== chosen) throw invalidConfig(`${field}: the key cannot sign with ${alg}`)
  const imported = key.toCryptoKey(importParameters[chosen], false, ['sign'])
  return { key: imported, alg: chosen, ...(kid === undefined ? {} : { kid }) }
}

function parseKey(text: string, field: string): { readonly key: KeyObject; readonly kid?: string } {
  try {
    if (!text.startsWith('{')) return { key: createPrivateKey(text) }
    const jwk: unknown = JSON.parse(text)
    if (typeof jwk !== 'object' || jwk === null) throw new TypeError('not an object')
    const key = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' })
    return 'kid' in jwk && typeof jwk.kid === 'string' ? { key, kid: jwk.kid } : { key }
  } catch {
    // The cause may quote the key.
    throw invalidConfig(`${field}: expected a private key as PEM or JWK`)
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): AssertionAlg | undefined {
  switch (asymmetricKeyType) {
    case 'ec':
      if (asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256'
      return asymmetricKeyDetails?.namedCurve === 'secp384r1' ? 'ES384' : undefined
    case 'rsa':
      return (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048 ? 'RS256' : undefined
    case 'ed25519':
      return 'EdDSA'
    default:
      return undefined
  }
}
