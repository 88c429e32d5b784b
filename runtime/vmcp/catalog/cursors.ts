/**
 * A list cursor encodes where the next page starts. The item name in a cursor is sealed. A page is built before the
 * caller's permissions are checked. The page's last name may therefore belong to an item that the caller must not see.
 *
 * A cursor also contains the position in plain text. A process that cannot open the seal continues at that position,
 * which is correct unless the list has changed. A process cannot open the seal after a restart, or on another replica
 * without shared key material.
 * Source: MCP 2025-11-25, utilities/pagination ("opaque").
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { PagedKind } from '../model/catalog/entries.ts'

export interface CursorContent {
  /** Last item of the previous page. Undefined if the seal cannot be opened. */
  readonly after: string | undefined
  /** Number of items before the next page when the cursor was created. */
  readonly position: number
}

export interface Cursors {
  write(kind: PagedKind, after: string, position: number): string
  /** Returns undefined if the cursor is not valid for this kind of list. */
  read(kind: PagedKind, cursor: string): CursorContent | undefined
}

const formatVersion = 2
const headBytes = 6
const ivBytes = 12
const tagBytes = 16
const sealAt = headBytes + ivBytes + tagBytes
const maxCursor = 512
const kinds: readonly PagedKind[] = ['tools', 'resources', 'templates', 'prompts', 'skills']

/**
 * `secret` returns key material that the replicas share. Without a shared secret, the key is specific to this process.
 */
export function makeCursors(secret: () => string | undefined): Cursors {
  const own = derive(randomBytes(32).toString('base64'))
  let shared: { readonly material: string; readonly key: Buffer } | undefined

  function sharedKey(): Buffer | undefined {
    const material = secret()
    if (material === undefined) return undefined
    if (shared?.material !== material) shared = { material, key: derive(material) }
    return shared.key
  }

  return {
    write(kind, after, position) {
      const head = Buffer.alloc(headBytes)
      head[0] = formatVersion
      head[1] = kinds.indexOf(kind)
      head.writeUInt32BE(position, 2)
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', sharedKey() ?? own, iv).setAAD(head)
      const sealed = Buffer.concat([cipher.update(after, 'utf8'), cipher.final()])
      return Buffer.concat([head, iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    read(kind, cursor) {
      if (cursor.length > maxCursor || !/^[\w-]+$/.test(cursor)) return undefined
      const bytes = Buffer.from(cursor, 'base64url')
      if (bytes.length <= sealAt || bytes[0] !== formatVersion || bytes[1] !== kinds.indexOf(kind))
        return undefined
      const key = sharedKey()
      const after = (key && open(bytes, key)) ?? open(bytes, own)
      return { after, position: bytes.readUInt32BE(2) }
    },
  }
}

function derive(material: string): Buffer {
  return Buffer.from(hkdfSync('sha256', material, '', 'gatehouse vmcp cursors', 32))
}

function open(bytes: Buffer, key: Buffer): string | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(headBytes, headBytes + ivBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(bytes.subarray(0, headBytes))
    decipher.setAuthTag(bytes.subarray(headBytes + ivBytes, sealAt))
    return Buffer.concat([decipher.update(bytes.subarray(sealAt)), decipher.final()]).toString()
  } catch {
    return undefined
  }
}
