/**
 * The listings of one backend, kept by kind of client: credentials where they matter, and declared capabilities,
 * because a backend may offer different things to clients of different abilities.
 *
 * One read at a time per key; concurrent callers share it. A read is good until the backend announces a change, or for
 * a while. A failed read is remembered briefly, so that a dead backend does not slow every request down.
 */
import { hash } from 'node:crypto'
import type { Log } from '../../net/index.ts'
import type { Backend } from '../backends/backend.ts'
import type { Client } from '../operation.ts'
import { type Listing, readListing } from './listing.ts'

const MAX_KEYS = 1_024
/** How long a listing is good when the backend announces changes, and when it does not. */
const ANNOUNCED_MS = 5 * 60_000
const UNANNOUNCED_MS = 30_000
/** How long a failure is believed. */
const FAILURE_MS = 2_000
const BRAND_NEW_MS = 1_000

export interface Failure {
  readonly error: Error
}

interface Kept {
  listing: Listing | undefined
  failure: Error | undefined
  /** Time after which it is read again; 0: now. */
  freshUntil: number
  reading: Promise<Listing> | undefined
}

export interface ListingsOptions {
  readonly log: Log
  readonly now: () => number
  /** Told when a listing is read for the first time or has changed. */
  readonly onRead: (listing: Listing, before: Listing | undefined) => void
  /** Told whenever what `get` answers may have changed. */
  readonly onState: () => void
}

export class Listings {
  readonly #backend: Backend
  readonly #options: ListingsOptions
  /** Insertion order is order of use. */
  readonly #kept = new Map<string, Kept>()

  constructor(backend: Backend, options: ListingsOptions) {
    this.#backend = backend
    this.#options = options
  }

  /** Clients with equal keys see the same. */
  keyOf(client: Client): string {
    if (!this.#backend.settings.perCaller) return client.abilities.signature
    return `${client.abilities.signature} ${identityOf(client)}`
  }

  /** Until when the answer of `get` stays as it is, unless onState says otherwise. */
  freshUntil(client: Client): number {
    return this.#kept.get(this.keyOf(client))?.freshUntil ?? 0
  }

  /** What is known now, without asking anybody. */
  peek(client: Client): Listing | undefined {
    return this.#kept.get(this.keyOf(client))?.listing
  }

  /**
   * The listing for a client. `patient` waits for a new one when the known one is out of date; otherwise the known
   * one is good enough and is renewed in the background. Rejects with BACKEND_* errors.
   */
  async get(client: Client, patient: boolean): Promise<Listing> {
    const key = this.keyOf(client)
    const kept = this.#keep(key)
    if (kept.freshUntil > this.#options.now()) {
      if (kept.listing) return kept.listing
      if (kept.failure) throw kept.failure
    }
    const reading = this.#read(key, kept, client)
    if (kept.listing && !patient) {
      reading.catch(() => {})
      return kept.listing
    }
    return reading
  }

  #keep(key: string): Kept {
    const known = this.#kept.get(key)
    if (known) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    const kept: Kept = { listing: undefined, failure: undefined, freshUntil: 0, reading: undefined }
    this.#kept.set(key, kept)
    if (this.#kept.size > MAX_KEYS) {
      const [oldest] = this.#kept.keys()
      if (oldest !== undefined) this.#kept.delete(oldest)
    }
    return kept
  }

  #read(key: string, kept: Kept, client: Client): Promise<Listing> {
    kept.reading ??= this.#readNow(key, client)
      .then(
        (listing) => {
          const before = kept.listing
          kept.listing = listing
          kept.failure = undefined
          kept.freshUntil = this.#options.now() + goodFor(listing)
          this.#options.onState()
          this.#options.onRead(listing, before)
          return listing
        },
        (error: unknown) => {
          kept.listing = undefined
          kept.failure = error instanceof Error ? error : new Error('listing failed')
          kept.freshUntil = this.#options.now() + FAILURE_MS
          this.#options.onState()
          throw kept.failure
        },
      )
      .finally(() => {
        kept.reading = undefined
      })
    return kept.reading
  }

  async #readNow(key: string, client: Client): Promise<Listing> {
    const backend = this.#backend
    const { timeoutMs, name } = backend.settings
    const signal = AbortSignal.timeout(timeoutMs)
    const sender = { caller: client.caller, headers: client.headers }
    const capabilities = client.abilities.raw
    const { connection, server } = await backend.listing(key, capabilities, sender, signal)
    return readListing({
      backend: name,
      connection,
      server,
      capabilities,
      sender,
      signal,
      timeoutMs,
      log: this.#options.log,
    })
  }

  /** Marks the listing of a client as out of date when its backend does not announce changes and it is not brand-new. */
  expireUnannounced(client: Client): void {
    const kept = this.#kept.get(this.keyOf(client))
    if (!kept?.listing || goodFor(kept.listing) === ANNOUNCED_MS) return
    const readAt = kept.freshUntil - UNANNOUNCED_MS
    if (readAt + BRAND_NEW_MS > this.#options.now()) return
    kept.freshUntil = 0
    this.#options.onState()
  }

  /** Marks listings as out of date: one key, or all. */
  expire(key?: string): void {
    for (const [name, kept] of this.#kept) {
      if (key === undefined || name === key) kept.freshUntil = 0
    }
    this.#options.onState()
  }
}

/** Equal for clients that backends cannot tell apart by credentials or headers. */
export function identityOf(client: Client): string {
  return hash('sha256', JSON.stringify([client.caller.key, client.headers]), 'base64url')
}

/** A backend that announces every kind it offers needs to be asked rarely. */
function goodFor({ server }: Listing): number {
  const { capabilities } = server
  const announced = (['tools', 'resources', 'prompts'] as const).every(
    (kind) => !capabilities[kind] || capabilities.listChanged.has(kind),
  )
  return announced ? ANNOUNCED_MS : UNANNOUNCED_MS
}
