/**
 * Nonces for DPoP proofs. A client that must send a nonce cannot create proofs in advance.
 *
 * A nonce is the sealed time of its creation, so that replicas with the same secrets accept each other's nonces without
 * a store. A nonce is valid for five minutes, and is replaced after half of that time. The first secret seals nonces;
 * every secret can open them.
 * Source: RFC 9449 sections 8 and 9; NIST SP 800-38D.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { skewSec } from '../jwt.ts'

const lifeMs = 300_000
const algorithm = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16
const length = ivLength + 8 + tagLength

export interface Nonces {
  /** Returns a nonce that remains valid for at least half of its lifetime. */
  current(): string
  isValid(nonce: string): boolean
  /** True if the client should switch to the current nonce. */
  isAging(nonce: string): boolean
}

export interface NonceParts {
  /** Returns the secrets, with the current secret first. */
  readonly secrets: () => readonly Uint8Array[]
  /** Name of the endpoint. Other endpoints do not accept its nonces. */
  readonly purpose: string
  readonly now: () => number
}

export function makeNonces({ secrets, purpose, now }: NonceParts): Nonces {
  /** Derived keys, keyed by secret object; dropped together with the secret. */
  const keys = new WeakMap<Uint8Array, KeyObject>()
  let last: { readonly nonce: string; readonly atMs: number; readonly secret: Uint8Array } | undefined

  function keyOf(secret: Uint8Array): KeyObject {
    const known = keys.get(secret)
    if (known) return known
    const key = createSecretKey(
      Buffer.from(hkdfSync('sha256', secret, 'gatehouse', `dpop nonce ${purpose}`, 32)),
    )
    keys.set(secret, key)
    return key
  }

  function timeOf(nonce: string): number | undefined {
    const bytes = Buffer.from(nonce, 'base64url')
    if (bytes.length !== length || bytes.toString('base64url') !== nonce) return undefined
    for (const secret of secrets()) {
      const atMs = open(bytes, keyOf(secret))
      if (atMs !== undefined) return atMs
    }
    return undefined
  }

  return {
    current() {
      const [secret] = secrets()
      if (secret === undefined) throw new Error('there is no secret for DPoP nonces')
      const atMs = now()
      if (last === undefined || last.secret !== secret || Math.abs(atMs - last.atMs) >= lifeMs / 2)
        last = { nonce: seal(atMs, keyOf(secret)), atMs, secret }
      return last.nonce
    },
    isValid(nonce) {
      const atMs = timeOf(nonce)
      return atMs !== undefined && now() - atMs < lifeMs && atMs - now() <= skewSec * 1000
    },
    isAging(nonce) {
      const atMs = timeOf(nonce)
      return atMs === undefined || now() - atMs >= lifeMs / 2
    },
  }
}

function seal(atMs: number, key: KeyObject): string {
  const iv = randomBytes(ivLength)
  const cipher = createCipheriv(algorithm, key, iv)
  const time = Buffer.alloc(8)
  time.writeDoubleBE(atMs)
  return Buffer.concat([iv, cipher.update(time), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

function open(bytes: Buffer, key: KeyObject): number | undefined {
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivLength), { authTagLength: tagLength })
  decipher.setAuthTag(bytes.subarray(-tagLength))
  try {
    const time = decipher.update(bytes.subarray(ivLength, -tagLength))
    decipher.final()
    return time.readDoubleBE()
  } catch {
    return undefined
  }
}
