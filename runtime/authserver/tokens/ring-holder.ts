/**
 * Stores the current key ring, and replaces it when mounted keys or secrets change.
 *
 * Replicas receive a new HMAC secret one after another. A new first secret is therefore used immediately to verify and
 * open, but only after a delay to sign and seal. Until then, the previous first secret stays in use. The store contains
 * the id of the secret in use, because a starting process cannot determine which secrets the other replicas have.
 */
import { createHash } from 'node:crypto'
import type { AuthServerConfig, AuthServerSecrets } from '../../config/index.ts'
import { type Store, sealId } from '../../store/index.ts'
import { type KeyRing, makeKeyRing } from './key-ring.ts'

const currentSecretKey = 'hmac-secret-in-use'
const dayMs = 86_400_000
/** Lifetime of the stored id. Every replica extends this lifetime once a day. */
const storedMs = 30 * dayMs

export interface RingHolderParts {
  readonly config: Pick<AuthServerConfig, 'secrets'>
  readonly store: Store
  readonly now: () => number
  /** Time in milliseconds during which a new secret is used only to verify and open. */
  readonly promoteAfterMs: number
  /** Supplies the keys and secrets that are not configured. */
  readonly lent?: KeyRing | undefined
}

export class RingHolder {
  readonly #parts: RingHolderParts
  #print: string
  #ring: KeyRing
  /** Key ring with the secrets in the configured order. */
  #next: KeyRing
  /** Time of the last change to the configured keys and secrets. `#next` takes effect `promoteAfterMs` later. */
  #changedAtMs: number
  /** Id of the secret that this process last recorded as being in use. */
  #announced: string | undefined
  #storedAtMs = 0

  private constructor(parts: RingHolderParts, print: string, rings: Rings) {
    this.#parts = parts
    this.#print = print
    this.#ring = rings.now
    this.#next = rings.next
    this.#changedAtMs = parts.now()
  }

  /** Throws an INVALID_CONFIG error that lists every error in the keys and secrets. */
  static async start(parts: RingHolderParts): Promise<RingHolder> {
    const secrets = parts.config.secrets()
    const next = await makeKeyRing(secrets, parts.lent)
    const inUse = await secretInUse(parts.store, next)
    const now = await ringWithFirst(inUse, secrets, next)
    return new RingHolder(parts, fingerprint(secrets), { now, next })
  }

  get ring(): KeyRing {
    if (this.isSettled) this.#ring = this.#next
    return this.#ring
  }

  /** True when every replica can be expected to have loaded the current secrets. */
  get isSettled(): boolean {
    return this.#parts.now() - this.#changedAtMs >= this.#parts.promoteAfterMs
  }

  /** Reloads keys and secrets. When the new values are invalid, keeps the old values and throws INVALID_CONFIG. */
  async reload(): Promise<void> {
    const secrets = this.#parts.config.secrets()
    const print = fingerprint(secrets)
    if (print !== this.#print) {
      const before = this.ring
      const next = await makeKeyRing(secrets, before)
      this.#ring = await ringWithFirst(before.secretId, secrets, next)
      this.#next = next
      this.#changedAtMs = this.#parts.now()
      this.#print = print
    }
    await this.#announce()
  }

  /**
   * Stores the id once per change, then only extends its lifetime. Replicas with older settings must not keep
   * overwriting the id.
   */
  async #announce(): Promise<void> {
    const { ring, isSettled } = this
    const { store, now } = this.#parts
    if (!isSettled || ring.ephemeral.hmac) return
    const isNew = ring.secretId !== this.#announced
    if (!isNew && now() - this.#storedAtMs < dayMs) return
    try {
      if (isNew) await store.set(currentSecretKey, ring.secretId, { ttlMs: storedMs })
      else await store.touch(currentSecretKey, storedMs)
      this.#announced = ring.secretId
      this.#storedAtMs = now()
    } catch {
      // The store is down, which its own health check reports. The next reload retries.
    }
  }
}

interface Rings {
  readonly now: KeyRing
  readonly next: KeyRing
}

/**
 * Returns the stored id of the secret in use. The first server finds no stored id, and stores the id of its own secret.
 */
async function secretInUse(store: Store, ring: KeyRing): Promise<string | undefined> {
  if (ring.ephemeral.hmac) return undefined
  const claim = (): Promise<boolean> =>
    store.set(currentSecretKey, ring.secretId, { onlyIf: 'absent', ttlMs: storedMs })
  if (ring.sealSecrets.length < 2) {
    // Not awaited: with a single secret there is no choice, and a store that is down must not delay the start.
    claim().catch(() => false)
    return undefined
  }
  try {
    await claim()
    return await store.get(currentSecretKey)
  } catch {
    return undefined
  }
}

/** Returns `ring` with this secret moved to the front, or `ring` unchanged when it does not contain the secret. */
async function ringWithFirst(
  id: string | undefined,
  secrets: AuthServerSecrets,
  ring: KeyRing,
): Promise<KeyRing> {
  const first = secrets.hmacSecrets.find((secret) => sealId(secret) === id)
  if (!first || id === ring.secretId) return ring
  const others = secrets.hmacSecrets.filter((secret) => secret !== first)
  return makeKeyRing({ ...secrets, hmacSecrets: [first, ...others] }, ring)
}

function fingerprint(secrets: AuthServerSecrets): string {
  const hash = createHash('sha256')
  for (const pem of secrets.signingKeys) hash.update(`key ${pem.length} `).update(pem)
  for (const secret of secrets.hmacSecrets) hash.update(`hmac ${secret.length} `).update(secret)
  return hash.digest('base64')
}
