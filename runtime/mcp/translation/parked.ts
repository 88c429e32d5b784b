/**
 * What waits for the responses of a stateless client, under a state that only this client was given: random,
 * good once, for ten minutes, and for the same request only.
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

  /** `expire` gets what no client came back for in time. */
  constructor(expire: (value: T) => void) {
    this.#expire = expire
  }

  /** Returns the state for the client. Throws RATE_LIMITED. */
  put(value: T, request: StatelessRequest): string {
    if (this.#entries.size >= maxParked)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many requests wait for responses' })
    const state = randomBytes(24).toString('base64url')
    const timer = setTimeout(() => {
      this.#entries.delete(state)
      this.#expire(value)
    }, ttlMs)
    timer.unref()
    this.#entries.set(state, { value, request: bindingOf(request), scope: request.scope, timer })
    return state
  }

  /** Takes it out. Throws INVALID_PARAMS when nothing waits under the state for this request. */
  take(state: string, request: StatelessRequest): T {
    const entry = this.#entries.get(state)
    if (entry?.request !== bindingOf(request)) {
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: the request no longer waits for responses; start it again',
      })
    }
    this.#entries.delete(state)
    clearTimeout(entry.timer)
    return entry.value
  }

  /**
   * Gives up the oldest one that `fits`, of the scope that has the most: who leaves many waiting loses the first. False
   * when there is none.
   */
  expireOne(fits: (value: T) => boolean): boolean {
    const found = [...this.#entries].filter(([, { value }]) => fits(value))
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

/** What makes two requests the same: who may meet, method, subject, arguments as they were written. */
function bindingOf({ scope, method, params }: StatelessRequest): string {
  const parts = [scope, method, rawOf(params, 'name'), rawOf(params, 'uri'), rawOf(params, 'arguments')]
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

function rawOf(params: JsonObject, name: string): string {
  return params.raw(name)?.toString() ?? ''
}
