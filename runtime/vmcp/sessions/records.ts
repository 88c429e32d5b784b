/**
 * What a session leaves in the shared store, so that any replica can go on with it: what was negotiated, whose it is,
 * its subscriptions. No tokens, no lists.
 * Source: spec document 3 (sessionStorage).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Store } from '../../store/index.ts'
import { readAbilities } from '../edge/client.ts'
import type { Session, SessionFacts } from './session.ts'

export interface SessionRecord {
  readonly facts: SessionFacts
  readonly logLevel: string | undefined
  /** URI and backend. */
  readonly subscriptions: readonly [string, string][]
}

export interface SessionRecords {
  create(session: Session): Promise<void>
  /** Reads and renews; undefined when there is no such session. */
  read(id: string): Promise<SessionRecord | undefined>
  update(session: Session): Promise<void>
  remove(id: string): Promise<void>
}

/** `ttlMs` is sliding: every read renews it. All methods reject with SESSION_STORE_DOWN. */
export function sessionRecords(store: Store, ttlMs: number): SessionRecords {
  async function guarded<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (cause) {
      throw new GatehouseError('SESSION_STORE_DOWN', { cause })
    }
  }
  return {
    async create(session) {
      await guarded(store.set(session.id, write(session), { ttlMs, onlyIf: 'absent' }))
    },
    async read(id) {
      if (!/^[\x21-\x7e]{1,128}$/.test(id)) return undefined
      const value = await guarded(store.get(id))
      if (value === undefined) return undefined
      await guarded(store.touch(id, ttlMs))
      return parse(id, value)
    },
    async update(session) {
      await guarded(store.set(session.id, write(session), { ttlMs, onlyIf: 'present' }))
    },
    async remove(id) {
      await guarded(store.delete(id))
    },
  }
}

function write({ facts, logLevel, subscriptions }: Session): string {
  return JSON.stringify({
    v: 1,
    owner: facts.owner,
    protocolVersion: facts.protocolVersion,
    capabilities: facts.abilities.raw.toString(),
    info: facts.info?.toString(),
    logLevel,
    subscriptions: [...subscriptions],
  })
}

/** A value that is not ours reads as no session. */
function parse(id: string, value: string): SessionRecord | undefined {
  try {
    const read: unknown = JSON.parse(value)
    if (typeof read !== 'object' || read === null) return undefined
    const record: Record<string, unknown> = { ...read }
    const { owner, protocolVersion, capabilities, info, logLevel, subscriptions } = record
    if (typeof owner !== 'string' || typeof protocolVersion !== 'string' || typeof capabilities !== 'string')
      return undefined
    return {
      facts: {
        id,
        owner,
        protocolVersion,
        abilities: readAbilities(Buffer.from(capabilities)),
        info: typeof info === 'string' ? Buffer.from(info) : undefined,
      },
      logLevel: typeof logLevel === 'string' ? logLevel : undefined,
      subscriptions: Array.isArray(subscriptions) ? subscriptions.filter(isPair) : [],
    }
  } catch {
    return undefined
  }
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string')
}
