/**
 * Remembers which backend's pages a client has read. An app calls tools under their original names, and several
 * backends may use the same name. The backend whose page the client read last is then the app's own server.
 */
import { LRUCache } from 'lru-cache'
import { isShared } from '../../model/client.ts'
import type { OperationClient } from '../../model/session.ts'

const maxOwners = 10_000
const maxBackends = 32
const keepMs = 15 * 60_000

export class PageReads {
  readonly #now: () => number
  /** Times of the last reads, keyed by owner and then by backend. */
  readonly #owners = new LRUCache<string, Map<string, number>>({ max: maxOwners })

  constructor(now: () => number) {
    this.#now = now
  }

  record(client: OperationClient, backend: string): void {
    const owner = ownerOf(client)
    if (owner === undefined) return
    const reads = this.#owners.get(owner) ?? new Map<string, number>()
    reads.delete(backend)
    reads.set(backend, this.#now())
    const [oldest] = reads.keys()
    if (oldest !== undefined && reads.size > maxBackends) reads.delete(oldest)
    this.#owners.set(owner, reads)
  }

  /** Returns the backend, among `backends`, whose page the client read last, within 15 minutes. */
  latest(client: OperationClient, backends?: readonly string[]): string | undefined {
    const owner = ownerOf(client)
    const reads = owner === undefined ? undefined : this.#owners.get(owner)
    const since = this.#now() - keepMs
    return [...(reads ?? [])].findLast(([name, at]) => at >= since && (backends?.includes(name) ?? true))?.[0]
  }
}

/**
 * Returns the session or the caller. Returns undefined for callers that cannot be distinguished, because one of them
 * could otherwise redirect the calls of another.
 */
function ownerOf({ era, session, caller }: OperationClient): string | undefined {
  if (era === 'session' && session) return `session ${session.id}`
  return isShared(caller) ? undefined : `caller ${caller.key}`
}
