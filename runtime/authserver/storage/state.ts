/**
 * Typed repositories over the store: one namespace per kind of record, hashed keys, sealed values.
 *
 * Ids are secrets (a state, a code, a session id). The store contains only their hashes, so an attacker who reads its
 * keys cannot present them.
 */
import {
  type StoreEntry,
  type SealOptions,
  type SetOptions,
  type Secrets,
  type Store,
  sealStore,
} from '../../store/index.ts'
import { decode, type RecordShape, text } from '../model/codec.ts'
import * as records from '../model/records.ts'
import { sha256 } from '../model/identifiers.ts'

/** A record with the store entry that `swap` compares. */
export interface SeenRecord<T> {
  readonly value: T
  readonly entry: StoreEntry
}

export interface Repository<T> {
  get(id: string): Promise<T | undefined>
  read(id: string): Promise<SeenRecord<T> | undefined>
  put(id: string, value: T, ttlMs: number): Promise<void>
  /** Returns false when the id is already in use. */
  add(id: string, value: T, ttlMs: number): Promise<boolean>
  /** Removes the value. Only one of several simultaneous callers receives the value. */
  take(id: string): Promise<T | undefined>
  /**
   * Replaces the value that was read, or deletes it when `next` is undefined. Returns false when the value has changed.
   */
  swap(id: string, seen: SeenRecord<T>, next: T | undefined, ttlMs?: number): Promise<boolean>
  touch(id: string, ttlMs: number): Promise<boolean>
  delete(id: string): Promise<boolean>
}

/** Returns a positive integer, as the store requires. */
function toTtl(ttlMs: number): number {
  return Math.max(1, Math.ceil(ttlMs))
}

function makeRepository<T>(
  store: Store,
  shape: RecordShape<T>,
  options: Pick<SetOptions, 'yields'> = {},
): Repository<T> {
  return {
    get: async (id) => decode(shape, await store.get(sha256(id))),
    async read(id) {
      const entry = await store.read(sha256(id))
      const value = decode(shape, entry?.value)
      return entry && value !== undefined ? { value, entry } : undefined
    },
    async put(id, value, ttlMs) {
      await store.set(sha256(id), JSON.stringify(value), { ...options, ttlMs: toTtl(ttlMs) })
    },
    add: (id, value, ttlMs) =>
      store.set(sha256(id), JSON.stringify(value), { ...options, ttlMs: toTtl(ttlMs), onlyIf: 'absent' }),
    take: async (id) => decode(shape, await store.take(sha256(id))),
    swap: (id, seen, next, ttlMs) =>
      store.swap(
        sha256(id),
        seen.entry,
        next === undefined ? undefined : JSON.stringify(next),
        ttlMs === undefined ? undefined : toTtl(ttlMs),
      ),
    touch: (id, ttlMs) => store.touch(sha256(id), toTtl(ttlMs)),
    delete: (id) => store.delete(sha256(id)),
  }
}

/** Key prefix for families of refresh tokens. */
export const familyPrefix = 'family:'

export type State = ReturnType<typeof makeState>

/** Creates the repositories for one authorization server. `store` is the server's own namespace. */
export function makeState(store: Store, secrets: Secrets, options: SealOptions = {}) {
  const sealed = sealStore(store, secrets, options)
  const of = <T>(name: string, shape: RecordShape<T>, yields?: Pick<SetOptions, 'yields'>): Repository<T> =>
    makeRepository(sealed.namespace(`${name}:`), shape, yields)
  // Untrusted clients create these records, which must not displace the records of signed-in users.
  const untrusted = { yields: true }
  return {
    /** For buckets, locks and marks, which contain no secrets. */
    store,
    /** All other records, for resealing. */
    sealed,
    clients: of('client', records.client, untrusted),
    requests: of('request', records.request, untrusted),
    upstreamSteps: of('upstream-step', records.upstreamStep, untrusted),
    connections: of('connect', records.connection),
    connectedClients: of('connectedClients', records.connectedClients),
    confirmations: of('confirm', records.confirmation),
    codes: of('code', records.code),
    families: of('family', records.family),
    sessions: of('session', records.session),
    /** Maps a user and a client to a session id. */
    links: of('link', text),
    rows: of('upstream', records.row),
    signIns: of('sign-in', records.signIn),
    endings: of('ended', records.ending),
    consents: of('consent', records.consent),
    withdrawals: of('withdrawn', records.withdrawal),
    registrations: of('dcr', records.registration),
  }
}
