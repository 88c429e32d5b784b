/**
 * Seals text that a client stores, such as request states and task ids. The client can neither read nor change sealed
 * text. The binding contains everything for which the text is valid, such as the caller.
 *
 * The seal is AES-256-GCM. A server's replicas share key material and accept each other's text.
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'

const ivBytes = 12
const tagBytes = 16
export const sealHeadBytes: number = 1 + ivBytes + tagBytes

export interface SealerOptions {
  /** First byte of sealed text. */
  readonly formatVersion: number
  /** Purpose of the text. Keys for different purposes differ. */
  readonly purpose: string
  /**
   * Returns key material that the replicas share. The first key seals text, and every key opens text. While the list is
   * empty, the process uses its own key. Text that was sealed with the process's own key stays valid in this process.
   */
  readonly secrets: () => readonly string[]
  /** Maximum length of sealed text. */
  readonly maxLength: number
}

export interface Sealer {
  seal(text: string, binding: readonly unknown[]): string
  /** Returns undefined if this server did not seal the text for this binding. */
  open(sealed: string, binding: readonly unknown[]): string | undefined
}

export function makeSealer({ formatVersion, purpose, secrets, maxLength }: SealerOptions): Sealer {
  const keyOf = (material: string): Buffer => Buffer.from(hkdfSync('sha256', material, '', purpose, 32))
  const ownKey = keyOf(randomBytes(32).toString('base64'))
  let derived: { readonly from: readonly string[]; readonly keys: readonly Buffer[] } | undefined

  /** Returns the keys that open text. The first key seals text. */
  function keys(): readonly Buffer[] {
    const from = secrets()
    if (derived?.from !== from) derived = { from, keys: [...from.map(keyOf), ownKey] }
    return derived.keys
  }

  const aadOf = (binding: readonly unknown[]): Buffer =>
    Buffer.from(hash('sha256', JSON.stringify([formatVersion, ...binding]), 'hex'))

  return {
    seal(text, binding) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', keys()[0] ?? ownKey, iv)
      cipher.setAAD(aadOf(binding))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(formatVersion), iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    open(sealed, binding) {
      const bytes = sealed.length > maxLength ? undefined : Buffer.from(sealed, 'base64url')
      if (!bytes || bytes.length < sealHeadBytes || bytes[0] !== formatVersion) return undefined
      // Accept only one encoding of a text, because base64 may end with unused bits.
      if (bytes.toString('base64url') !== sealed) return undefined
      const aad = aadOf(binding)
      for (const key of keys()) {
        const text = decrypt(bytes, key, aad)
        if (text !== undefined) return text
      }
      return undefined
    },
  }
}

function decrypt(bytes: Buffer, key: Buffer, aad: Buffer): string | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 1 + ivBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(aad)
    decipher.setAuthTag(bytes.subarray(1 + ivBytes, sealHeadBytes))
    return Buffer.concat([decipher.update(bytes.subarray(sealHeadBytes)), decipher.final()]).toString()
  } catch {
    return undefined
  }
}
