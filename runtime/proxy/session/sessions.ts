/**
 * Sessions of the session era that this proxy has forwarded, bound to the caller that opened them.
 *
 * Sessions are limited by count, by the bytes stored for recovery, and by two hours of inactivity. With a shared store,
 * this process looks up unknown ids there. Reopening a session is implemented in recovery.ts.
 * Source: MCP 2025-11-25, "Session Management"; docs/reference/specification/proxy-command.md does not define
 * sessions.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Message } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { EventIds } from '../model/event-ids.ts'
import type { ProxiedSession } from '../model/session.ts'
import { noteState, stateBytes } from './session-state.ts'

/** A session as stored outside this process. */
export interface ProxiedSessionRecord {
  readonly upstreamId: string
  /** UTF-8 text of the initialize request. */
  readonly initBody?: string | undefined
  /** State that the client has set in the session, as pairs of key and request text. */
  readonly state?: readonly (readonly [string, string])[] | undefined
}

/** Storage that processes share. Keys do not contain session ids in plain text. */
export interface SharedSessions {
  get(key: string): Promise<ProxiedSessionRecord | undefined>
  set(key: string, record: ProxiedSessionRecord, idleMs: number): Promise<void>
  delete(key: string): Promise<void>
  close(): Promise<void>
}

export interface ProxiedSessionTable {
  /** Returns this caller's session with this id from this process. */
  find(owner: string, clientId: string): ProxiedSession | undefined
  /**
   * Like `find`, but also reads the shared store. Rejects with SESSION_STORE_DOWN. Returns undefined when there is no
   * shared store.
   */
  lookUp(owner: string, clientId: string): Promise<ProxiedSession | undefined> | undefined
  /** Stores a session that the target opened for this caller. */
  open(owner: string, id: string, initBody: Buffer | undefined): ProxiedSession
  /** Records a request that the target has accepted, if it set session state. */
  note(owner: string, session: ProxiedSession, message: Message): void
  /** Stores the session's new id at the target. */
  moved(owner: string, session: ProxiedSession): void
  forget(owner: string, clientId: string): void
  readonly size: number
}

export interface SessionTableOptions {
  readonly maxSessions?: number
  /** Period of inactivity after which a session is dropped. */
  readonly idleMs?: number
  /** Milliseconds, monotonic. */
  readonly now?: () => number
  readonly shared?: SharedSessions | undefined
  /** The target's address. Separates shared sessions from those of proxies for other targets. */
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
  // The caller's key contains only one NUL, between issuer and subject, and an id contains no NUL.
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
      log.warn('sharing a session failed', { err: error })
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
      // Set the session again to update its recorded size.
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
        log.warn('deleting a shared session failed', { err: error })
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
