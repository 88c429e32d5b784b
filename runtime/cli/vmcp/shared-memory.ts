/**
 * Shares the primary process's memory with a virtual server's workers when there is no Redis. Each kind of record has
 * its own store, so records of one kind cannot use up the space reserved for another kind.
 */
import { type MemoryStoreOptions, makeMemoryStore, makeRemoteStore, serveStore } from '../../store/index.ts'
import type { Store, StoreCall } from '../../store/index.ts'
import type { Handlers, WorkerChannel } from '../../process/index.ts'
import { taskStoreLimits } from '../../vmcp/index.ts'

type Kind = 'sessions' | 'tasks' | 'counters' | 'proofs' | 'logins'

const bounds: Readonly<Record<Kind, MemoryStoreOptions>> = {
  sessions: { maxEntries: 50_000, maxBytes: 64 * 1024 * 1024 },
  tasks: taskStoreLimits,
  counters: { maxEntries: 100_000 },
  proofs: { maxEntries: 100_000 },
  logins: {},
}

/**
 * Time limit for a response. A live primary responds immediately, and a primary that does not respond counts as dead.
 */
const longestMs = 10_000

/** Returns the primary's handlers. */
export function offerMemory(of: Readonly<Record<Kind, MemoryStoreOptions>> = bounds): Handlers {
  return Object.fromEntries(
    Object.entries(of).map(([kind, options]) => {
      const serve = serveStore(makeMemoryStore(options))
      return [nameOf(kind), (call: unknown) => serve(call as StoreCall)]
    }),
  )
}

/** Returns a worker's stores. */
export function sharedMemory(channel: WorkerChannel): Readonly<Record<Kind, Store>> {
  const store = (kind: Kind) =>
    makeRemoteStore((call) => channel.call(nameOf(kind), call, { withinMs: longestMs }))
  return {
    sessions: store('sessions'),
    tasks: store('tasks'),
    counters: store('counters'),
    proofs: store('proofs'),
    logins: store('logins'),
  }
}

function nameOf(kind: string): string {
  return `store.${kind}`
}
