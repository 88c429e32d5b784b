/**
 * Holds the key ring in use and replaces it when mounted keys or secrets change.
 *
 * Replicas get a new HMAC secret one after the other. So a new first secret verifies and opens at once, but it signs
 * and seals only after a delay; until then the secret that was first before goes on. The store holds the id of the
 * secret in use, because a process that starts cannot know which one the other replicas have.
 */
import { createHash } from 'node:crypto'
import type { AuthServerConfig, AuthServerSecrets } from '../../config/index.ts'
import { type Store, sealId } from '../../store/index.ts'
import { type KeyRing, makeKeyRing } from './key-ring.ts'

const currentSecretKey = 'hmac-secret-in-use'
const dayMs = 86_400_000
/** Life of the stored id; every replica extends it once a day. */
const storedMs = 30 * dayMs

export interface RingHolderParts {
  readonly config: Pick<AuthServerConfig, 'secrets'>
  readonly store: Store
  readonly now: () => number
  /** How long a new secret only verifies and opens, milliseconds. */
  readonly promoteAfterMs: number
  /** Supplies the keys and secrets that are not configured. */
  readonly lent?: KeyRing | undefined
}

export class RingHolder {
  readonly #parts: RingHolderParts
  #print: string
  #ring: KeyRing
  /** The ring with the secrets in the configured order. */
  #next: KeyRing
  /** When the configured keys and secrets changed; `#next` is used from `promoteAfterMs` after it. */
  #changedAtMs: number
  /** Id of the secret that this process last stored as the one in use. */
  #announced: string | undefined
  #storedAtMs = 0

  private constructor(parts: RingHolderParts, print: string, rings: Rings) {
    this.#parts = parts
    this.#print = print
    this.#ring = rings.now
    this.#next = rings.next
    this.#changedAtMs = parts.now()
  }

  /** Throws INVALID_CONFIG naming every error of the keys and secrets. */
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

  /** True when every replica may be expected to have the secrets held here. */
  get isSettled(): boolean {
    return this.#parts.now() - this.#changedAtMs >= this.#parts.promoteAfterMs
  }

  /** Reads keys and secrets again. Keeps the old ones, and throws INVALID_CONFIG, when the new ones cannot be used. */
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

  /** Once for each change: a replica that still has older settings must not be told about them again and again. */
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
      // The store is down, which its own watch reports. The next reload tries again.
    }
  }
}

interface Rings {
  readonly now: KeyRing
  readonly next: KeyRing
}

/** The id in the store. A server that finds none stores its own: it is the first. */
async function secretInUse(store: Store, ring: KeyRing): Promise<string | undefined> {
  if (ring.ephemeral.hmac) return undefined
  const claim = (): Promise<boolean> =>
    store.set(currentSecretKey, ring.secretId, { onlyIf: 'absent', ttlMs: storedMs })
  if (ring.sealSecrets.length < 2) {
    // Not awaited: with one secret there is no choice, and a store that is down must not delay the start.
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

/** `ring` with the secret of this id as the current one; `ring` itself when it has no such secret. */
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
