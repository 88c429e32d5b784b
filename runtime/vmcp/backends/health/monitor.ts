/**
 * Knows how each backend is: checks them in turn, counts what calls report, and says whom requests may go to.
 *
 * A check that fails for lack of credentials proves that the backend lives; whether that is an error depends on whether
 * it was given any. Calls feed the circuit breaker, checks feed both. A call that takes too long may be slow by itself:
 * it makes the breaker check the backend, and only the outcome of that check counts.
 * Source: docs/reference/specification/virtual-server.md, "States and transitions", operational.failureHandling.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { Breaker, type CircuitState } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import { answerBehind } from '../transport/backend-answer.ts'
import type { Clock } from '../../model/time/clock.ts'
import {
  categoryOf,
  isResponse,
  isTimeout,
  isTransportFailure,
  sessionLost,
  slowReason,
} from './failure-kinds.ts'
import { unavailableError } from '../../model/unavailable.ts'

export type HealthStatus = 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'

export interface LastError {
  readonly category: string
  /** The backend's own explanation: short, without credentials. */
  readonly detail?: string | undefined
  readonly at: number
}

export interface BackendHealth {
  readonly status: HealthStatus
  readonly consecutiveFailures: number
  /** Milliseconds since the epoch; undefined before the first check. */
  readonly lastCheckAt: number | undefined
  /** One of a fixed set of words; undefined while all is well. */
  readonly lastErrorCategory: string | undefined
  readonly lastTransitionAt: number | undefined
  /** What went wrong the last time, however long ago; undefined when nothing has. */
  readonly lastError: LastError | undefined
  /** Undefined when the breaker is off. */
  readonly circuit: { readonly state: CircuitState; readonly changedAt: number } | undefined
}

export interface HealthSettings {
  /** 0 turns checks off. */
  readonly intervalMs: number
  /** 0: no limit but the backend's own time-outs. */
  readonly timeoutMs: number
  readonly unhealthyThreshold: number
  readonly breaker: { readonly failureThreshold: number; readonly timeoutMs: number } | undefined
}

export interface MonitoredBackend {
  readonly name: string
  /** True when requests to it carry credentials of some kind. */
  readonly hasCredentials: boolean
  check(signal: AbortSignal): Promise<void>
}

export interface MonitorOptions {
  readonly settings: HealthSettings
  readonly clock: Clock
  readonly events: Events
  /** Told when a backend becomes available or ceases to be. */
  readonly onChange: (name: string) => void
}

/** A check that takes longer says that the backend is degraded. */
const slowMs = 5_000
/** Wait after the first failed check of a backend that never answered; doubles up to the longest, for so many checks. */
const firstRetryMs = 500
const maxRetryMs = 5_000
const earlyChecks = 36

interface Watch {
  readonly subject: MonitoredBackend
  readonly breaker: Breaker | undefined
  status: HealthStatus
  failures: number
  /** Calls in a row that failed because the backend does not keep its sessions. */
  lostSessions: number
  lastCheckAt: number | undefined
  lastErrorCategory: string | undefined
  lastTransitionAt: number | undefined
  lastError: BackendHealth['lastError']
  wasAvailable: boolean
  hasResponded: boolean
  checks: number
  /** A check for the breaker alone is in flight. */
  verifying: boolean
  cancel: (() => void) | undefined
  stopped: boolean
}

export const unknownHealth: BackendHealth = {
  status: 'unknown',
  consecutiveFailures: 0,
  lastCheckAt: undefined,
  lastErrorCategory: undefined,
  lastTransitionAt: undefined,
  lastError: undefined,
  circuit: undefined,
}

export class HealthMonitor {
  readonly #options: MonitorOptions
  readonly #watches = new Map<string, Watch>()

  constructor(options: MonitorOptions) {
    this.#options = options
  }

  /** Starts watching; the first check runs at once. */
  add(subject: MonitoredBackend): void {
    const { settings } = this.#options
    const watch: Watch = {
      subject,
      breaker: this.#breakerOf(subject),
      status: 'unknown',
      failures: 0,
      lostSessions: 0,
      lastCheckAt: undefined,
      lastErrorCategory: undefined,
      lastTransitionAt: undefined,
      lastError: undefined,
      wasAvailable: true,
      hasResponded: false,
      checks: 0,
      verifying: false,
      cancel: undefined,
      stopped: false,
    }
    this.#watches.set(subject.name, watch)
    if (settings.intervalMs > 0) void this.#loop(watch)
  }

  #breakerOf({ name }: MonitoredBackend): Breaker | undefined {
    const { settings, clock, events } = this.#options
    if (!settings.breaker) return undefined
    return new Breaker({
      ...settings.breaker,
      now: clock.now,
      onChange: (before, after) => events.emit('backend_circuit', { backend: name, before, after }),
    })
  }

  remove(name: string): void {
    const watch = this.#watches.get(name)
    if (!watch) return
    watch.stopped = true
    watch.cancel?.()
    this.#watches.delete(name)
  }

  close(): void {
    for (const name of this.#watches.keys()) this.remove(name)
  }

  health(name: string): BackendHealth {
    const watch = this.#watches.get(name)
    return watch ? healthOf(watch) : unknownHealth
  }

  /** False while requests must not go to the backend. */
  available(name: string): boolean {
    const { status, breaker } = this.#watches.get(name) ?? {}
    return status !== 'unhealthy' && status !== 'unauthenticated' && breaker?.allows() !== false
  }

  /** Claims the right to send a request. Throws BACKEND_UNAVAILABLE while the circuit is open. */
  admit(name: string): void {
    const breaker = this.#watches.get(name)?.breaker
    if (!breaker) return
    if (!breaker.allows()) throw unavailableError([name])
    breaker.start()
  }

  /** How a client's request went; undefined for success. */
  report(name: string, error: Error | undefined): void {
    const watch = this.#watches.get(name)
    if (!watch) return
    if (error) this.#noteFailedCall(watch, error)
    this.#noteSession(watch, error)
    if (watch.breaker && isTimeout(error)) {
      void this.#verify(watch, watch.breaker)
      return
    }
    if (watch.breaker) count(watch.breaker, error)
    this.#settle(watch)
  }

  /** Checks a backend of which a call timed out, and counts what that shows. Never rejects. */
  async #verify(watch: Watch, breaker: Breaker): Promise<void> {
    if (watch.verifying) return
    watch.verifying = true
    const error = await this.#ask(watch)
    watch.verifying = false
    if (watch.stopped) return
    if (isTimeout(error)) breaker.failure()
    else count(breaker, error)
    this.#settle(watch)
  }

  /**
   * Counts calls that failed because the backend loses its sessions, also the ones opened again. A check goes over another
   * session and may succeed meanwhile, so that only a call that succeeds takes this back.
   */
  #noteSession(watch: Watch, error: Error | undefined): void {
    if (error instanceof GatehouseError && error.code === 'BACKEND_SESSION_LOST') {
      watch.lostSessions++
      watch.lastErrorCategory = sessionLost
      const { status } = watch
      if (this.#losesSessions(watch) && (status === 'healthy' || status === 'unknown'))
        this.#become(watch, 'degraded', error)
    } else if (!error && watch.lostSessions > 0) {
      const recovered = this.#losesSessions(watch) && watch.status === 'degraded'
      watch.lostSessions = 0
      if (watch.lastErrorCategory === sessionLost) watch.lastErrorCategory = undefined
      if (recovered) this.#become(watch, 'healthy')
    }
  }

  #losesSessions({ lostSessions }: Watch): boolean {
    return lostSessions >= this.#options.settings.unhealthyThreshold
  }

  /** A client's request ended without telling how the backend is. */
  release(name: string): void {
    this.#watches.get(name)?.breaker?.release()
  }

  async #loop(watch: Watch): Promise<void> {
    const { settings, clock } = this.#options
    // While the circuit is open the checks are held back too; the first one afterwards is the trial.
    if (watch.breaker?.allows() !== false) {
      watch.breaker?.start()
      await this.check(watch.subject.name)
    }
    if (watch.stopped) return
    watch.cancel = clock.after(untilNextCheck(watch, settings.intervalMs), () => void this.#loop(watch))
  }

  /** Runs one check now. Never rejects. */
  async check(name: string): Promise<void> {
    const watch = this.#watches.get(name)
    if (!watch) return
    const { clock } = this.#options
    const startedAt = clock.now()
    const error = await this.#ask(watch)
    if (error === undefined) this.#succeeded(watch, clock.now() - startedAt)
    else this.#failed(watch, error)
    watch.lastCheckAt = clock.now()
    watch.checks++
    if (!watch.stopped) this.#settle(watch)
  }

  /** Keeps in mind and tells that a request of a client failed, unless it was refused here. */
  #noteFailedCall(watch: Watch, error: Error): void {
    if (error instanceof GatehouseError && error.code === 'BACKEND_UNAVAILABLE') return
    const reason = categoryOf(error)
    watch.lastError = { category: reason, at: this.#options.clock.now() }
    this.#options.events.emit('backend_call_failed', { backend: watch.subject.name, reason, err: error })
  }

  /** Asks the backend for a sign of life within the time for checks. Resolves with what went wrong. */
  async #ask({ subject }: Watch): Promise<Error | undefined> {
    const { settings, clock } = this.#options
    const controller = new AbortController()
    const cancel =
      settings.timeoutMs > 0
        ? clock.after(settings.timeoutMs, () => controller.abort(new GatehouseError('BACKEND_TIMEOUT')))
        : undefined
    try {
      await subject.check(controller.signal)
      return undefined
    } catch (error) {
      return error instanceof Error ? error : new Error('the check failed', { cause: error })
    } finally {
      cancel?.()
    }
  }

  #succeeded(watch: Watch, tookMs: number): void {
    watch.failures = 0
    watch.lastErrorCategory = watch.lostSessions > 0 ? sessionLost : undefined
    watch.breaker?.success()
    this.#become(watch, tookMs > slowMs || this.#losesSessions(watch) ? 'degraded' : 'healthy')
  }

  #failed(watch: Watch, error: Error): void {
    // The backend is busy, or the check was not sent, so the check is inconclusive.
    if (error instanceof GatehouseError && error.code === 'BACKEND_UNAVAILABLE') {
      watch.breaker?.release()
      return
    }
    const refused = error instanceof GatehouseError && error.code === 'BACKEND_AUTH_FAILED'
    if (refused && watch.subject.hasCredentials) {
      this.#succeeded(watch, 0)
      return
    }
    watch.failures++
    watch.lastErrorCategory = categoryOf(error)
    // A check is not sent for a caller, so every reader of the status may see its explanation.
    const detail = answerBehind(error)?.text
    watch.lastError = { category: watch.lastErrorCategory, detail, at: this.#options.clock.now() }
    if (watch.failures >= this.#options.settings.unhealthyThreshold)
      this.#become(watch, refused ? 'unauthenticated' : 'unhealthy', error, detail)
    if (refused) watch.breaker?.release()
    else watch.breaker?.failure()
  }

  #become(watch: Watch, status: HealthStatus, error?: Error, detail?: string): void {
    if (watch.status === status) return
    const before = watch.status
    watch.status = status
    watch.lastTransitionAt = this.#options.clock.now()
    this.#options.events.emit('backend_health', {
      backend: watch.subject.name,
      before,
      after: status,
      reason: status === 'healthy' ? undefined : (watch.lastErrorCategory ?? slowReason),
      detail,
      err: error,
    })
  }

  #settle(watch: Watch): void {
    const available = this.available(watch.subject.name)
    // Its first response after failures: what it offers was missing from every list until now.
    const firstResponse = available && !watch.hasResponded && watch.status !== 'unknown'
    const cameLate = firstResponse && watch.checks > 1
    watch.hasResponded ||= firstResponse
    if (available === watch.wasAvailable && !cameLate) return
    watch.wasAvailable = available
    this.#options.onChange(watch.subject.name)
  }
}

/** Returns the health that checks and calls have shown. A circuit that is not closed overrides successful checks. */
function healthOf(watch: Watch): BackendHealth {
  const { breaker, failures, lostSessions, lastCheckAt, lastErrorCategory, lastTransitionAt, lastError } =
    watch
  const checked = {
    status: watch.status,
    consecutiveFailures: Math.max(failures, lostSessions),
    lastCheckAt,
    lastErrorCategory,
    lastTransitionAt,
    lastError,
    circuit: breaker && { state: breaker.state, changedAt: breaker.changedAt },
  }
  const serves = watch.status !== 'unhealthy' && watch.status !== 'unauthenticated'
  if (!breaker || breaker.state === 'closed' || !serves) return checked
  return {
    ...checked,
    status: breaker.state === 'open' ? 'unhealthy' : 'degraded',
    consecutiveFailures: Math.max(checked.consecutiveFailures, breaker.failures),
    lastErrorCategory: lastErrorCategory ?? lastError?.category,
    lastTransitionAt: Math.max(lastTransitionAt ?? 0, breaker.changedAt),
  }
}

/** A backend that never answered yet is probably starting: for about three minutes it is asked again soon. */
function untilNextCheck({ hasResponded, checks }: Watch, intervalMs: number): number {
  return hasResponded || checks > earlyChecks
    ? intervalMs
    : Math.min(intervalMs, maxRetryMs, firstRetryMs * 2 ** Math.max(0, checks - 1))
}

/** Tells the breaker what a request has shown; nothing when it never reached the backend. */
function count(breaker: Breaker, error: Error | undefined): void {
  if (isTransportFailure(error)) breaker.failure()
  else if (error === undefined || isResponse(error)) breaker.success()
  else breaker.release()
}
