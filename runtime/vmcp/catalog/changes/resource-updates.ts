/**
 * Forwards `notifications/resources/updated` to clients. Limits the notification rate for each resource and client,
 * because a client rereads the resource after each notification.
 */
import { hash } from 'node:crypto'
import { JsonObject } from '../../../mcp/index.ts'
import type { Events } from '../../../observe/index.ts'
import { ChangePacer, type Pace } from './change-pacer.ts'
import type { Clock } from '../../model/time/clock.ts'

const pace: Pace = {
  free: 20,
  burstMs: 0,
  firstPauseMs: 500,
  maxPauseMs: 500,
  quietMs: 5_000,
  reportFrom: 100,
}
/** Params above this size are reduced to their `uri`. */
const maxParamsBytes = 16 * 1024

export interface ResourceUpdatesOptions {
  readonly events: Events
  readonly clock: Clock
}

export class ResourceUpdates {
  readonly #options: ResourceUpdatesOptions
  readonly #pacers = new Map<string, ChangePacer>()

  constructor(options: ResourceUpdatesOptions) {
    this.#options = options
  }

  /** Calls `deliver` with the params now, or with the latest params after a pause. */
  forward(backend: string, sessionId: string, params: Buffer, deliver: (params: Buffer) => void): void {
    const uri = new JsonObject(params).text('uri')
    if (uri === undefined || uri.length > maxParamsBytes) return
    const passed = params.length > maxParamsBytes ? Buffer.from(JSON.stringify({ uri })) : params
    const key = `${sessionId} ${hash('sha256', uri, 'base64url')}`
    this.#pacerOf(backend).announce(key, () => deliver(passed))
  }

  #pacerOf(backend: string): ChangePacer {
    const known = this.#pacers.get(backend)
    if (known) return known
    const { events, clock } = this.#options
    const notification = 'resources/updated'
    const pacer = new ChangePacer({
      pace,
      clock,
      onChange: (state) =>
        events.emit('changes_paced', { backend, notification, resolved: state === 'quiet' }),
    })
    this.#pacers.set(backend, pacer)
    return pacer
  }

  /** Drops the pending updates of removed backends. */
  forget(backends: readonly string[]): void {
    for (const name of backends) {
      this.#pacers.get(name)?.close()
      this.#pacers.delete(name)
    }
  }

  close(): void {
    this.forget([...this.#pacers.keys()])
  }
}
