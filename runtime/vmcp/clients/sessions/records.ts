/**
 * Stores sessions, so any replica can resume them. A record contains the negotiated facts, the owner, and the
 * subscriptions, but no tokens or lists.
 * Source: docs/reference/specification/virtual-server.md#sessionStorage (sessionStorage).
 */
import { GatehouseError, isFields } from '../../../../schemas/index.ts'
import type { Store } from '../../../store/index.ts'
import { restoreAbilities } from '../../model/client.ts'
import type { BackendSession } from '../../model/session.ts'
import type { ServerSession, SessionChanges, SessionFacts } from './session.ts'

export interface SessionRecord extends SessionChanges {
  readonly facts: SessionFacts
  /** The stored text of the record. */
  readonly text: string
}

export interface SessionRecords {
  create(session: ServerSession): Promise<void>
  /** Renews the lifetime of a session that is in use but receives no requests. */
  keep(id: string): Promise<void>
  /**
   * Reads a session and renews its lifetime. Returns undefined if the session does not exist, and `unchanged` if the
   * stored text equals `known`, because parsing a record costs more than reading it.
   */
  read(id: string, known: string | undefined): Promise<SessionRecord | 'unchanged' | undefined>
  update(session: ServerSession): Promise<void>
  remove(id: string): Promise<void>
}

/** Maximum number of renewals in one lifetime. Each renewal costs a round trip. */
const renewShare = 20
const maxRenewed = 100_000

export interface SessionRecordsOptions {
  /** Identifies this server (`serverScope`). Sessions of other servers in the same store are treated as missing. */
  readonly server: string
  /** Lifetime in milliseconds. Each use renews the lifetime, but at most once per twentieth of the lifetime. */
  readonly ttlMs: number
  readonly now: () => number
}

/** Returns the session records in a store. All methods of the result reject with SESSION_STORE_DOWN. */
export function sessionRecords(store: Store, { server, ttlMs, now }: SessionRecordsOptions): SessionRecords {
  const renewedAt = new Map<string, number>()

  async function renew(id: string): Promise<void> {
    const last = renewedAt.get(id) ?? 0
    if (now() - last < ttlMs / renewShare) return
    if (renewedAt.size >= maxRenewed) renewedAt.clear()
    renewedAt.set(id, now())
    await guarded(store.touch(id, ttlMs))
  }

  async function guarded<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (cause) {
      throw new GatehouseError('SESSION_STORE_DOWN', { cause })
    }
  }
  return {
    async create(session) {
      await guarded(store.set(session.id, write(session, server), { ttlMs, onlyIf: 'absent' }))
    },
    async read(id, known) {
      if (!/^[\x21-\x7e]{1,128}$/.test(id)) return undefined
      const value = await guarded(store.get(id))
      if (value === undefined) return undefined
      const record = value === known ? 'unchanged' : parse(id, value, server)
      if (record) await renew(id)
      return record
    },
    keep: renew,
    async update(session) {
      await guarded(store.set(session.id, write(session, server), { ttlMs, onlyIf: 'present' }))
    },
    async remove(id) {
      renewedAt.delete(id)
      await guarded(store.delete(id))
    },
  }
}

function write(session: ServerSession, server: string): string {
  const { facts, logLevel, subscriptions, backendSessions, seen } = session
  return JSON.stringify({
    v: 1,
    server,
    owner: facts.owner,
    protocolVersion: facts.protocolVersion,
    capabilities: facts.abilities.raw.toString(),
    info: facts.info?.toString(),
    logLevel,
    subscriptions: [...subscriptions],
    backends: Object.fromEntries(backendSessions),
    seen,
  })
}

/**
 * Parses a stored session. Returns undefined if the value is not a session of this server. Records from earlier builds
 * contain no server name and are accepted.
 */
function parse(id: string, value: string, server: string): SessionRecord | undefined {
  try {
    const read: unknown = JSON.parse(value)
    if (typeof read !== 'object' || read === null) return undefined
    const record: Record<string, unknown> = { ...read }
    const { owner, protocolVersion, capabilities, info, logLevel, subscriptions, backends, seen } = record
    if (record['server'] !== undefined && record['server'] !== server) return undefined
    if (typeof owner !== 'string' || typeof protocolVersion !== 'string' || typeof capabilities !== 'string')
      return undefined
    return {
      text: value,
      facts: {
        id,
        owner,
        protocolVersion,
        abilities: restoreAbilities(Buffer.from(capabilities)),
        info: typeof info === 'string' ? Buffer.from(info) : undefined,
      },
      logLevel: typeof logLevel === 'string' ? logLevel : undefined,
      subscriptions: Array.isArray(subscriptions) ? subscriptions.filter(isPair) : [],
      backendSessions: readBackends(backends),
      seen: readTexts(seen),
    }
  } catch {
    return undefined
  }
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string')
}

function readBackends(value: unknown): [string, BackendSession][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, value]: [string, unknown]): [string, BackendSession][] => {
    if (typeof value !== 'object' || value === null) return []
    const read: Partial<Record<keyof BackendSession, unknown>> = value
    const { sessionId, protocolVersion, logging, binding, extensions } = read
    // A record from an earlier build has no binding. The owner of the stored backend session is unknown, so a new
    // session is opened at the backend.
    if (typeof sessionId !== 'string' || typeof protocolVersion !== 'string' || typeof binding !== 'string')
      return []
    const session: BackendSession = { sessionId, protocolVersion, logging: logging === true, binding }
    return [[name, isFields(extensions) ? { ...session, extensions } : session]]
  })
}

function readTexts(value: unknown): Readonly<Record<string, string>> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
