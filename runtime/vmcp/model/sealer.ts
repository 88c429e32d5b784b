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
   * Returns key material that the replicas share. While the function returns undefined, the process uses its own key.
   * Text that was sealed with the process's own key stays valid in this process.
   */
  readonly secret: () => string | undefined
  /** Maximum length of sealed text. */
  readonly maxLength: number
}

export interface Sealer {
  seal(text: string, binding: readonly unknown[]): string
  /** Returns undefined if this server did not seal the text for this binding. */
  open(sealed: string, binding: readonly unknown[]): string | undefined
}

export function makeSealer({ formatVersion, purpose, secret, maxLength }: SealerOptions): Sealer {
  const keyOf = (material: string): Buffer => Buffer.from(hkdfSync('sha256', material, '', purpose, 32))
  const ownKey = keyOf(randomBytes(32).toString('base64'))
  let shared: { readonly material: string; readonly key: Buffer } | undefined

  function sharedKey(): Buffer | undefined {
    const material = secret()
    if (material === undefined) return undefined
    if (shared?.material !== material) shared = { material, key: keyOf(material) }
    return shared.key
  }

  const aadOf = (binding: readonly unknown[]): Buffer =>
    Buffer.from(hash('sha256', JSON.stringify([formatVersion, ...binding]), 'hex'))

  return {
    seal(text, binding) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', sharedKey() ?? ownKey, iv)
      cipher.setAAD(aadOf(binding))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(formatVersion), iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    open(sealed, binding) {
      const bytes = sealed.length > maxLength ? undefined : Buffer.from(sealed, 'base64url')
      if (!bytes || bytes.length < sealHeadBytes || bytes[0] !== formatVersion) return undefined
      // Accept only one encoding of a text, because base64 may end with unused bits.
      if (bytes.toString('base64url') !== sealed) return undefined
      const key = sharedKey()
      const aad = aadOf(binding)
      return (key && decrypt(bytes, key, aad)) ?? decrypt(bytes, ownKey, aad)
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
