/**
 * Logs requests that were refused: too large, too many at once, not authenticated, no JSON. Untrusted clients can cause
 * them, so each kind of refusal is logged once a minute at most, with the number of those in between.
 */
import type { GatehouseError } from '../../schemas/index.ts'
import type { HookLog } from './log.ts'

/** What was called, in words of ours: both become labels. */
export interface Called {
  readonly kind: string
  readonly hook: string
}

export interface RefusalsOptions {
  readonly log: HookLog
  /** Seconds, monotonic. */
  readonly seconds: () => number
}

const quietSeconds = 60

export class Refusals {
  readonly #options: RefusalsOptions
  /** By kind, hook and code, of which there are few. */
  readonly #told = new Map<string, { at: number; since: number }>()

  constructor(options: RefusalsOptions) {
    this.#options = options
  }

  tell({ kind, hook }: Called, { code, status, message }: GatehouseError): void {
    const { log, seconds } = this.#options
    const now = seconds()
    const key = `${kind} ${hook} ${code}`
    const told = this.#told.get(key)
    if (told && now - told.at < quietSeconds) {
      told.since += 1
      return
    }
    const before = told && told.since > 0 ? { since: told.since } : {}
    log('warn', 'a request was refused', { kind, hook, status, reason: message, ...before })
    this.#told.set(key, { at: now, since: 0 })
  }
}
