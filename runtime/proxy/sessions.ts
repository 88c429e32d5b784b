/**
 * Sessions of the session era that passed through this proxy, bound to the caller who opened them.
 *
 * Bounded three ways: count, bytes kept for recovery, and two hours without use. Knows nothing of how a session is
 * opened again: recovery.ts.
 * Source: MCP 2025-11-25, "Session Management"; spec document 1 leaves sessions open.
 */
import { LRUCache } from 'lru-cache'

/** One session as one caller knows it. */
export interface Session {
  /** The id that the client uses. */
  readonly clientId: string
  /** The id that the target uses; differs after a recovery. */
  upstreamId: string
  /** Body of the initialize request; undefined when it was not seen or is too large to keep. */
  readonly initBody: Buffer | undefined
  /** The recovery under way, shared by every request that needs it. */
  recovering: Promise<boolean> | undefined
}

const maxInitBytes = 65_536
const maxKeptBytes = 67_108_864

export interface SessionTable {
  /** The session with this id that this caller opened. */
  find(owner: string, clientId: string): Session | undefined
  /** Remembers a session that the target opened for this caller. */
  open(owner: string, id: string, initBody: Buffer | undefined): Session
  forget(owner: string, clientId: string): void
  readonly size: number
}

export interface SessionTableOptions {
  readonly maxSessions?: number
  /** Idle time after which a session is forgotten. */
  readonly idleMs?: number
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

export function makeSessionTable(options: SessionTableOptions = {}): SessionTable {
  const { now } = options
  const sessions = new LRUCache<string, Session>({
    max: options.maxSessions ?? 10_000,
    maxSize: maxKeptBytes,
    sizeCalculation: (session) => 256 + (session.initBody?.length ?? 0),
    ttl: options.idleMs ?? 7_200_000,
    updateAgeOnGet: true,
    ...(now ? { perf: { now }, ttlResolution: 0 } : {}),
  })
  // The caller's key holds no NUL beyond the one of its own shape, and an id never does.
  const key = (owner: string, id: string): string => `${owner}\0${id}`
  return {
    find: (owner, clientId) => sessions.get(key(owner, clientId)),
    open(owner, id, initBody) {
      const kept = initBody && initBody.length <= maxInitBytes ? Buffer.from(initBody) : undefined
      const session: Session = { clientId: id, upstreamId: id, initBody: kept, recovering: undefined }
      sessions.set(key(owner, id), session)
      return session
    },
    forget(owner, clientId) {
      sessions.delete(key(owner, clientId))
    },
    get size() {
      return sessions.size
    },
  }
}
