/**
 * A store with encrypted values, for tokens, secrets and user data.
 *
 * Uses AES-256-GCM with a random nonce per write. The full key name is authenticated too, so a value that was moved to
 * another key cannot be read. Encryption keys are derived by HKDF-SHA-256 from a set of secrets. The first secret seals
 * values, and any secret can open them (rotation). Reading a value under an older secret seals the value again under
 * the first secret, without changing its ttl. `swap` treats both forms as the same value. A value that no secret can
 * open counts as absent and is reported.
 *
 * Key names, sizes and lifetimes stay visible, so callers hash secrets in key names. Buckets and counters are not
 * encrypted.
 * Source: NIST SP 800-38D; RFC 5869.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { randomBuffer } from '../net/index.ts'
import type { StoreEntry, Store } from './store.ts'

export interface SealedStore extends Store {
  /**
   * Seals the value again under the first secret, if it was sealed under another secret. Returns undefined when no
   * readable value exists.
   */
  reseal(key: string): Promise<Sealing | undefined>
  namespace(prefix: string): SealedStore
}

/** A value and the secret that seals it now. */
export interface Sealing {
  readonly value: string
  /** Id of the secret; see `sealId`. */
  readonly sealedBy: string
  /** True when this call sealed the value again. */
  readonly resealed: boolean
}

type Unreadable = 'unknown-key' | 'tampered'

export interface SealOptions {
  /** Called when a value cannot be opened: its secret was removed, or the value was modified. */
  readonly onUnreadable?: (key: string, reason: Unreadable) => void
  /**
   * False while other processes may not have the first secret yet. While it returns false, reads do not reseal values.
   */
  readonly mayReseal?: () => boolean
}

interface SealKey {
  readonly id: string
  /**
   * A key object instead of a Buffer, because wrapping a Buffer on every use would cost several times as much as the
   * encryption.
   */
  readonly key: KeyObject
}

/**
 * Returns the secrets, with the current secret first. Because this is a function, rotated secrets take effect without a
 * restart.
 */
export type Secrets = () => readonly Uint8Array[]

const version = 'g1'

function derive(secret: Uint8Array): SealKey {
  const bytes = (info: string, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, 'gatehouse', `store ${info} ${version}`, length))
  return { id: bytes('id', 6).toString('base64url'), key: createSecretKey(bytes('key', 32)) }
}

/** Derived keys, keyed by secret object and dropped together with the secret. */
const sealKeys = new WeakMap<Uint8Array, SealKey>()

function keyOf(secret: Uint8Array): SealKey {
  const known = sealKeys.get(secret)
  if (known) return known
  const key = derive(secret)
  sealKeys.set(secret, key)
  return key
}

/** Returns the id that identifies a secret in the values that it seals. The id does not reveal the secret. */
export function sealId(secret: Uint8Array): string {
  return keyOf(secret).id
}

/**
 * Maximum number of retries. Resealing may change a value between a read and its swap; if a value changes more often,
 * there is another cause.
 */
const maxTries = 4

interface Opened {
  readonly value: string
  readonly sealedBy: string
}

/** Wraps a store. `secrets` must never return an empty list. */
export function sealStore(inner: Store, secrets: Secrets, options: SealOptions = {}): SealedStore {
  return sealed(inner, '', secrets, options)
}

function sealed(inner: Store, prefix: string, secrets: Secrets, options: SealOptions): SealedStore {
  function seal(key: string, value: string): string {
    const [secret] = secrets()
    if (!secret) throw new Error('no secret to seal with')
    const using = keyOf(secret)
    const nonce = randomBuffer(12)
    const cipher = createCipheriv('aes-256-gcm', using.key, nonce)
    cipher.setAAD(Buffer.from(prefix + key))
    const text = cipher.update(value, 'utf8')
    // In GCM, `final` returns no data and completes the tag.
    cipher.final()
    return `${version}.${using.id}.${Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url')}`
  }

  function open(key: string, raw: string): Opened | undefined {
    const opened = tryOpen(key, raw)
    if (typeof opened !== 'string') return opened
    options.onUnreadable?.(prefix + key, opened)
    return undefined
  }

  function tryOpen(key: string, raw: string): Opened | Unreadable {
    const [format, id = '', body = ''] = raw.split('.')
    const using = secrets()
      .map(keyOf)
      .find((candidate) => candidate.id === id)
    if (format !== version || !using) return 'unknown-key'
    const bytes = Buffer.from(body, 'base64url')
    if (bytes.length < 28) return 'tampered'
    const decipher = createDecipheriv('aes-256-gcm', using.key, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(prefix + key))
    decipher.setAuthTag(bytes.subarray(-16))
    try {
      const text = decipher.update(bytes.subarray(12, -16))
      // Checks the tag. Throws when the value was modified, so use the text only after this check.
      decipher.final()
      return { value: text.toString('utf8'), sealedBy: id }
    } catch {
      return 'tampered'
    }
  }

  function currentId(): string {
    const [secret] = secrets()
    return secret ? sealId(secret) : ''
  }

  /** Returns the value, sealed again if necessary. A failure to seal does not fail the read. */
  async function read(key: string): Promise<StoreEntry | undefined> {
    const entry = await inner.read(key)
    const opened = entry && open(key, entry.value)
    if (!opened) return undefined
    const { value } = opened
    if (opened.sealedBy !== currentId() && (options.mayReseal?.() ?? true))
      await inner.swap(key, entry, seal(key, value)).catch(() => false)
    return { value, version: entry.version }
  }

  async function swap(
    key: string,
    seen: StoreEntry | undefined,
    next: string | undefined,
    ttlMs?: number,
  ): Promise<boolean> {
    const sealedNext = next === undefined ? undefined : seal(key, next)
    if (await inner.swap(key, seen, sealedNext, ttlMs)) return true
    if (!seen) return false
    for (let tries = 1; tries < maxTries; tries++) {
      const entry = await inner.read(key)
      if (!entry || open(key, entry.value)?.value !== seen.value) return false
      if (await inner.swap(key, entry, sealedNext, ttlMs)) return true
    }
    return false
  }

  async function reseal(key: string): Promise<Sealing | undefined> {
    const entry = await inner.read(key)
    // Skips buckets and locks, which are not sealed.
    if (!entry?.value.startsWith(`${version}.`)) return undefined
    const opened = tryOpen(key, entry.value)
    if (typeof opened === 'string') return undefined
    const current = currentId()
    if (opened.sealedBy === current) return { ...opened, resealed: false }
    const resealed = await inner.swap(key, entry, seal(key, opened.value))
    return { value: opened.value, sealedBy: resealed ? current : opened.sealedBy, resealed }
  }

  return {
    kind: inner.kind,
    get: async (key) => (await read(key))?.value,
    read,
    set: (key, value, setOptions) => inner.set(key, seal(key, value), setOptions),
    async take(key) {
      const raw = await inner.take(key)
      return raw === undefined ? undefined : open(key, raw)?.value
    },
    delete: (key) => inner.delete(key),
    touch: (key, ttlMs) => inner.touch(key, ttlMs),
    swap,
    reseal,
    takeTokens: (buckets, cost) => inner.takeTokens(buckets, cost),
    count: (counters) => inner.count(counters),
    scan: () => inner.scan(),
    namespace: (more) => sealed(inner.namespace(more), prefix + more, secrets, options),
    ping: () => inner.ping(),
    close: () => inner.close(),
  }
}
