/**
 * Sessions of the session era that passed through this proxy, bound to the caller who opened them.
 *
 * Bounded three ways: count, bytes stored for recovery, and two hours without use. With a shared store other processes
 * know them, too; this one asks it when it does not know an id itself. Knows nothing of how a session is opened again:
 * recovery.ts.
 * Source: MCP 2025-11-25, "ProxiedSession Management"; docs/reference/specification/proxy-command.md leaves sessions open.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Message } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { EventIds } from '../model/event-ids.ts'
import type { ProxiedSession } from '../model/session.ts'
import { noteState, stateBytes } from './session-state.ts'

/** What is stored of a session outside this process. */
export interface ProxiedSessionRecord {
  readonly upstreamId: string
  /** UTF-8 text of the initialize request. */
  readonly initBody?: string | undefined
  /** What the client has set since: what it concerns, and the text of the request. */
  readonly state?: readonly (readonly [string, string])[] | undefined
}

/** Where sessions are shared between processes. Keys hold no session id in plaintext. */
export interface SharedSessions {
  get(key: string): Promise<ProxiedSessionRecord | undefined>
  set(key: string, record: ProxiedSessionRecord, idleMs: number): Promise<void>
  delete(key: string): Promise<void>
  close(): Promise<void>
}

export interface ProxiedSessionTable {
  /** The session with this id that this caller opened, as far as this process knows. */
  find(owner: string, clientId: string): ProxiedSession | undefined
  /** The same, asking the shared store. Rejects with SESSION_STORE_DOWN. Undefined at once when nothing is shared. */
  lookUp(owner: string, clientId: string): Promise<ProxiedSession | undefined> | undefined
  /** Remembers a session that the target opened for this caller. */
  open(owner: string, id: string, initBody: Buffer | undefined): ProxiedSession
  /** Notes a request that the target has accepted, if it set something for the length of the session. */
  note(owner: string, session: ProxiedSession, message: Message): void
  /** The session has another id at the target now. */
  moved(owner: string, session: ProxiedSession): void
  forget(owner: string, clientId: string): void
  readonly size: number
}

export interface SessionTableOptions {
  readonly maxSessions?: number
  /** Idle time after which a session is forgotten. */
  readonly idleMs?: number
  /** Milliseconds, monotonic. */
  readonly now?: () => number
  readonly shared?: SharedSessions | undefined
  /** Address of the target. Separates shared sessions from those of proxies in front of other targets. */
  readonly target?: string | undefined
}

const maxInitBytes = 65_536
const maxCachedBytes = 67_108_864

export function makeSessionTable(log: Log, options: SessionTableOptions = {}): ProxiedSessionTable {
  const { now, shared, target = '' } = options
  const idleMs = options.idleMs ?? 7_200_000
  const sessions = new LRUCache<string, ProxiedSession>({
    max: options.maxSessions ?? 10_000,
    maxSize: maxCachedBytes,
    sizeCalculation: (session) => 256 + (session.initBody?.length ?? 0) + stateBytes(session.state),
    ttl: idleMs,
    updateAgeOnGet: true,
    ...(now ? { perf: { now }, ttlResolution: 0 } : {}),
  })
  // The caller's key holds no NUL beyond the one of its own shape, and an id never does.
  const keyOf = (owner: string, id: string): string => `${owner}\0${id}`

  function share(key: string, session: ProxiedSession): void {
    if (!shared) return
    const { upstreamId, initBody, state } = session
    const record = {
      upstreamId,
      ...(initBody ? { initBody: initBody.toString() } : {}),
      ...(state.size > 0
        ? { state: [...state].map(([of, bytes]): [string, string] => [of, bytes.toString()]) }
        : {}),
    }
    shared.set(sharedKey(target, key), record, idleMs).catch((error: unknown) => {
      log.warn('a session could not be shared', { err: error })
    })
  }

  async function fromShared(
    store: SharedSessions,
    key: string,
    clientId: string,
  ): Promise<ProxiedSession | undefined> {
    const record = await store.get(sharedKey(target, key))
    if (!record) return undefined
    const initBody = record.initBody === undefined ? undefined : Buffer.from(record.initBody)
    const { upstreamId } = record
    const session: ProxiedSession = {
      clientId,
      upstreamId,
      initBody,
      state: new Map((record.state ?? []).map(([of, text]) => [of, Buffer.from(text)])),
      eventIds: upstreamId === clientId ? undefined : new EventIds(),
      recovering: undefined,
    }
    sessions.set(key, session)
    return session
  }

  return {
    find: (owner, clientId) => sessions.get(keyOf(owner, clientId)),
    lookUp: (owner, clientId) => (shared ? fromShared(shared, keyOf(owner, clientId), clientId) : undefined),
    open(owner, id, initBody) {
      const stored = initBody && initBody.length <= maxInitBytes ? Buffer.from(initBody) : undefined
      const session: ProxiedSession = {
        clientId: id,
        upstreamId: id,
        initBody: stored,
        state: new Map(),
        eventIds: undefined,
        recovering: undefined,
      }
      sessions.set(keyOf(owner, id), session)
      share(keyOf(owner, id), session)
      return session
    },
    note(owner, session, message) {
      const key = keyOf(owner, session.clientId)
      if (!noteState(session.state, message) || !sessions.has(key)) return
      // Set again, so that its size is counted again.
      sessions.set(key, session)
      share(key, session)
    },
    moved(owner, session) {
      share(keyOf(owner, session.clientId), session)
    },
    forget(owner, clientId) {
      const key = keyOf(owner, clientId)
      sessions.delete(key)
      shared?.delete(sharedKey(target, key)).catch((error: unknown) => {
        log.warn('a session could not be forgotten', { err: error })
      })
    },
    get size() {
      return sessions.size
    },
  }
}

/** A session id is as sensitive as a password, so the store only receives a digest. */
function sharedKey(target: string, key: string): string {
  return hash('sha256', JSON.stringify([target, key]), 'base64url')
}
