/**
 * A store whose values are encrypted, for everything that holds a token, a secret or a person's data.
 *
 * AES-256-GCM with a fresh random nonce per write; the full key name is authenticated with it, so a value moved to
 * another key cannot be read. Keys are derived by HKDF-SHA-256 from the secret set: the first secret seals, every
 * secret opens (rotation). A value that no held secret opens counts as absent, and is reported.
 *
 * Does not hide key names (callers hash what is secret in them), sizes, or lifetimes. Buckets are not encrypted.
 * Source: design, section 4 "storage at rest"; NIST SP 800-38D; RFC 5869.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import type { StoreEntry, Store } from './store.ts'

export interface SealOptions {
  /** Told when a value cannot be opened: its secret was dropped, or someone changed it. */
  readonly onUnreadable?: (key: string, reason: 'unknown-key' | 'tampered') => void
}

interface SealKey {
  readonly id: string
  /** Not a Buffer: its wrapping would cost several times the encryption, at every use. */
  readonly key: KeyObject
}

/** The secret set, current one first. A function, so that rotated secrets are reloaded without a restart. */
export type Secrets = () => readonly Uint8Array[]

const version = 'g1'

function derive(secret: Uint8Array): SealKey {
  const bytes = (info: string, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, 'gatehouse', `store ${info} ${version}`, length))
  return { id: bytes('id', 6).toString('base64url'), key: createSecretKey(bytes('key', 32)) }
}

/** Derived keys are remembered per secret object; dropped secrets are forgotten with their array. */
const derived = new WeakMap<Uint8Array, SealKey>()

function keyOf(secret: Uint8Array): SealKey {
  const known = derived.get(secret)
  if (known) return known
  const key = derive(secret)
  derived.set(secret, key)
  return key
}

/** Wraps a store; `secrets` must never be empty. */
export function sealStore(inner: Store, secrets: Secrets, options: SealOptions = {}): Store {
  return sealed(inner, '', secrets, options)
}

function sealed(inner: Store, prefix: string, secrets: Secrets, options: SealOptions): Store {
  function seal(key: string, value: string): string {
    const [secret] = secrets()
    if (!secret) throw new Error('no secret to seal with')
    const using = keyOf(secret)
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', using.key, nonce)
    cipher.setAAD(Buffer.from(prefix + key))
    const text = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()])
    return `${version}.${using.id}.${Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url')}`
  }

  function open(key: string, raw: string | undefined): string | undefined {
    if (raw === undefined) return undefined
    const [format, id, body = ''] = raw.split('.')
    const using = secrets()
      .map(keyOf)
      .find((candidate) => candidate.id === id)
    if (format !== version || !using) return unreadable(key, 'unknown-key')
    const bytes = Buffer.from(body, 'base64url')
    if (bytes.length < 28) return unreadable(key, 'tampered')
    const decipher = createDecipheriv('aes-256-gcm', using.key, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(prefix + key))
    decipher.setAuthTag(bytes.subarray(-16))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('utf8')
    } catch {
      return unreadable(key, 'tampered')
    }
  }

  function unreadable(key: string, reason: 'unknown-key' | 'tampered'): undefined {
    options.onUnreadable?.(prefix + key, reason)
    return undefined
  }

  return {
    kind: inner.kind,
    get: async (key) => open(key, await inner.get(key)),
    async read(key): Promise<StoreEntry | undefined> {
      const entry = await inner.read(key)
      const value = open(key, entry?.value)
      return entry && value !== undefined ? { value, version: entry.version } : undefined
    },
    set: (key, value, setOptions) => inner.set(key, seal(key, value), setOptions),
    take: async (key) => open(key, await inner.take(key)),
    delete: (key) => inner.delete(key),
    touch: (key, ttlMs) => inner.touch(key, ttlMs),
    swap: (key, seen, next, ttlMs) =>
      inner.swap(key, seen, next === undefined ? undefined : seal(key, next), ttlMs),
    takeTokens: (buckets, cost) => inner.takeTokens(buckets, cost),
    namespace: (more) => sealed(inner.namespace(more), prefix + more, secrets, options),
    ping: () => inner.ping(),
    close: () => inner.close(),
  }
}
