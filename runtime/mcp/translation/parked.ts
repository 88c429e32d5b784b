/**
 * Values that are waiting for a stateless client's answers. The state that identifies a value is random, and only this
 * client receives it. The state can be used once, within ten minutes, and only for the same request.
 * Source: MCP 2026-07-28, patterns/mrtr, "Server Requirements".
 */
import { hash, randomBytes } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { JsonObject } from '../json/object.ts'
import type { StatelessRequest } from './stateless-reply.ts'

const ttlMs = 10 * 60_000
const maxParked = 1_000

interface Entry<T> {
  readonly value: T
  readonly request: string
  readonly scope: string
  readonly timer: NodeJS.Timeout
}

export class Parked<T> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #expire: (value: T) => void

  /** `expire` receives a value if the value's client did not return in time. */
  constructor(expire: (value: T) => void) {
    this.#expire = expire
  }

  /**
   * Stores a value and returns the state that identifies it, for the client. Throws RATE_LIMITED if too many values are
   * stored.
   */
  put(value: T, request: StatelessRequest): string {
    if (this.#entries.size >= maxParked)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many requests are waiting for answers' })
    const state = randomBytes(24).toString('base64url')
    const timer = setTimeout(() => {
      this.#entries.delete(state)
      this.#expire(value)
    }, ttlMs)
    timer.unref()
    this.#entries.set(state, { value, request: bindingOf(request), scope: request.scope, timer })
    return state
  }

  /**
   * Removes and returns the value that a state identifies. Throws INVALID_PARAMS if the state does not belong to this
   * request.
   */
  take(state: string, request: StatelessRequest): T {
    const entry = this.#entries.get(state)
    if (entry?.request !== bindingOf(request)) {
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: the request is no longer waiting for answers; start a new request',
      })
    }
    this.#entries.delete(state)
    clearTimeout(entry.timer)
    return entry.value
  }

  /**
   * Expires the oldest matching value in the scope with the most values. A client that leaves many values unanswered
   * therefore loses its own values. Returns false if no value matches.
   */
  expireOne(matches: (value: T) => boolean): boolean {
    const found = [...this.#entries].filter(([, { value }]) => matches(value))
    const counts = new Map<string, number>()
    for (const [, { scope }] of found) counts.set(scope, (counts.get(scope) ?? 0) + 1)
    const most = Math.max(0, ...counts.values())
    const oldest = found.find(([, { scope }]) => counts.get(scope) === most)
    if (!oldest) return false
    const [state, { value, timer }] = oldest
    this.#entries.delete(state)
    clearTimeout(timer)
    this.#expire(value)
    return true
  }

  close(): void {
    for (const { value, timer } of this.#entries.values()) {
      clearTimeout(timer)
      this.#expire(value)
    }
    this.#entries.clear()
  }
}

/**
 * Returns a hash that is equal for equal requests. The hash covers the scope, the method, the subject, and the
 * arguments as written.
 */
function bindingOf({ scope, method, params }: StatelessRequest): string {
  const parts = [scope, method, rawOf(params, 'name'), rawOf(params, 'uri'), rawOf(params, 'arguments')]
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

function rawOf(params: JsonObject, name: string): string {
  return params.raw(name)?.toString() ?? ''
}
