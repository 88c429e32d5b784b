/**
 * Signs JWTs with the keys of the ring (JWS, compact form). Verifies nothing.
 *
 * By node:crypto: jose signs through WebCrypto, which crosses to another thread and has OpenSSL take r and s apart, for
 * four times the time of the signature itself. Where the signature itself takes long it is made in another thread too.
 * Source: RFC 7515 section 5.1; RFC 7518 sections 3.3 and 3.4; RFC 8037 section 3.1.
 */
import { sign } from 'node:crypto'
import { promisify } from 'node:util'
import { GatehouseError } from '../../../schemas/index.ts'
import type { SigningKey } from './key-ring.ts'

interface Algorithm {
  /** Null: the algorithm has its own. */
  readonly hash: string | null
  /** Length of r and of s. */
  readonly partBytes?: number
  /** Fast enough to be done while others wait. */
  readonly fast?: true
}

const algorithms: Readonly<Record<string, Algorithm>> = {
  RS256: { hash: 'sha256' },
  ES256: { hash: 'sha256', partBytes: 32, fast: true },
  ES384: { hash: 'sha384', partBytes: 48 },
  ES512: { hash: 'sha512', partBytes: 66 },
  EdDSA: { hash: null, fast: true },
}

const signInThread = promisify(sign)

/** The token with these claims. */
export async function signJwt(key: SigningKey, typ: string, claims: object): Promise<string> {
  const algorithm = algorithms[key.alg]
  if (!algorithm) throw new GatehouseError('INTERNAL')
  const input = `${encoded({ alg: key.alg, kid: key.kid, typ })}.${encoded(claims)}`
  const { hash, partBytes } = algorithm
  const data = Buffer.from(input)
  const signature = algorithm.fast
    ? sign(hash, data, key.privateKey)
    : await signInThread(hash, data, key.privateKey)
  return `${input}.${(partBytes === undefined ? signature : joined(signature, partBytes)).toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The r and s of a DER signature one after the other, each of a fixed length (RFC 7518 section 3.4). */
function joined(der: Buffer, partBytes: number): Buffer {
  const out = Buffer.alloc(2 * partBytes)
  // The sequence around them; its length takes two bytes from 128 on.
  let at = (der[1] ?? 0) < 0x80 ? 2 : 3
  for (const end of [partBytes, 2 * partBytes]) {
    const length = der[at + 1] ?? 0
    // A number whose first bit is set has a zero byte before it.
    const surplus = Math.max(0, length - partBytes)
    der.copy(out, end - length + surplus, at + 2 + surplus, at + 2 + length)
    at += 2 + length
  }
  return out
}
