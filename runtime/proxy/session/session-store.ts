/** Stores the proxy's sessions in a store that replicas share (Redis). */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Store } from '../../store/index.ts'
import type { ProxiedSessionRecord, SharedSessions } from './sessions.ts'

export function sessionsInStore(store: Store): SharedSessions {
  const sessions = store.namespace('proxy:')
  return {
    async get(key) {
      let text: string | undefined
      try {
        text = await sessions.get(key)
      } catch (cause) {
        throw new GatehouseError('SESSION_STORE_DOWN', { headers: { 'Retry-After': '5' }, cause })
      }
      return text === undefined ? undefined : read(text)
    },
    async set(key, record, idleMs) {
      await sessions.set(key, JSON.stringify(record), { ttlMs: idleMs })
    },
    async delete(key) {
      await sessions.delete(key)
    },
    close: () => store.close(),
  }
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string'
}

/** Treats records in any other format as absent. */
function read(text: string): ProxiedSessionRecord | undefined {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || !('upstreamId' in value)) return undefined
  const initBody = 'initBody' in value && typeof value.initBody === 'string' ? value.initBody : undefined
  const state = 'state' in value && Array.isArray(value.state) ? value.state.filter(isPair) : undefined
  return typeof value.upstreamId === 'string' ? { upstreamId: value.upstreamId, initBody, state } : undefined
}
