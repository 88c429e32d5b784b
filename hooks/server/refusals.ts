/**
 * Logs rejected requests: too large, too many at once, unauthenticated, invalid JSON. Untrusted clients can cause
 * rejections, so the log contains each kind at most once a minute, with the number of suppressed entries.
 */
import type { GatehouseError } from '../../schemas/index.ts'
import type { HookLog } from './log.ts'

/** The called hook. Both values come from fixed sets, because metrics use them as labels. */
export interface CalledHook {
  readonly kind: string
  readonly hook: string
}

export interface RejectionLogOptions {
  readonly log: HookLog
  /** Returns the time in seconds from a monotonic clock. */
  readonly seconds: () => number
}

const quietSeconds = 60

export class RejectionLog {
  readonly #options: RejectionLogOptions
  /** The last log entry by kind, hook and code; there are only a few combinations. */
  readonly #lastLogged = new Map<string, { at: number; since: number }>()

  constructor(options: RejectionLogOptions) {
    this.#options = options
  }

  logRejected({ kind, hook }: CalledHook, { code, status, message }: GatehouseError): void {
    const { log, seconds } = this.#options
    const now = seconds()
    const key = `${kind} ${hook} ${code}`
    const lastLogged = this.#lastLogged.get(key)
    if (lastLogged && now - lastLogged.at < quietSeconds) {
      lastLogged.since += 1
      return
    }
    const before = lastLogged && lastLogged.since > 0 ? { since: lastLogged.since } : {}
    log('warn', 'request rejected', { kind, hook, status, reason: message, ...before })
    this.#lastLogged.set(key, { at: now, since: 0 })
  }
}
