/**
 * Tracks the health of each backend. Checks backends periodically, evaluates the outcomes of calls, and decides which
 * backends may receive requests.
 *
 * A backend that rejects a check's credentials has responded. If calls may contain other credentials, the check passes.
 * Calls affect the circuit breaker, and checks affect both the breaker and the status. A call may time out for reasons
 * that are unrelated to the backend's health. A timeout triggers a check, and only the check's outcome affects the
 * breaker.
 * Source: docs/reference/specification/virtual-server.md, "States and transitions", operational.failureHandling.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { Breaker, type CircuitState } from '../../../net/index.ts'
import type { Cause, Events } from '../../../observe/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { pauseBeforeCheck } from './check-pause.ts'
import {
  causeOf,
  isRejection,
  isSameCause,
  isTimeout,
  reportToBreaker,
  sessionLost,
  slowReason,
} from './failure-kinds.ts'
import { unavailableError } from '../../model/unavailable.ts'

export type HealthStatus = 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'

export interface LastError extends Cause {
  readonly at: number
}

export interface BackendHealth {
  readonly status: HealthStatus
  readonly consecutiveFailures: number
  /** Time of the last check, in milliseconds since the epoch. Undefined before the first check. */
  readonly lastCheckAt: number | undefined
  /** Category of the last error, from a fixed set of words. Undefined while the backend is healthy. */
  readonly lastErrorCategory: string | undefined
  readonly lastTransitionAt: number | undefined
  /** The most recent error, regardless of its age. Undefined if no request has failed. */
  readonly lastError: LastError | undefined
  /** State of the circuit breaker. Undefined if the breaker is disabled. */
  readonly circuit: { readonly state: CircuitState; readonly changedAt: number } | undefined
}

export interface HealthSettings {
  /** Interval between checks. 0 disables checks. */
  readonly intervalMs: number
  /** Time limit for a check. 0 means that only the backend's timeout applies. */
  readonly timeoutMs: number
  readonly unhealthyThreshold: number
  readonly breaker: { readonly failureThreshold: number; readonly timeoutMs: number } | undefined
}

export interface MonitoredBackend {
  readonly name: string
  /**
   * True if a check passes even though the backend rejects its credentials, because calls may contain other
   * credentials.
   */
  readonly toleratesRejection: boolean
  check(signal: AbortSignal): Promise<void>
}

export interface MonitorOptions {
  /** Name of this virtual server. */
  readonly server: string
  readonly settings: HealthSettings
  readonly clock: Clock
  readonly events: Events
  /** Called when a backend becomes available or unavailable. */
  readonly onChange: (name: string) => void
  /**
   * Returns a failure's local cause, such as the exit code of the backend's program. The local cause takes precedence
   * over the check's error, which is only a symptom.
   */
  readonly localCause?: ((name: string) => Cause | undefined) | undefined
}

/** A backend is degraded if a check takes longer than this. */
const slowMs = 5_000

interface Failure {
  readonly error?: Error
  readonly cause?: Cause
  /** True if the cause differs from the previous failure's cause. */
  readonly isNews?: boolean
}

interface Watch {
  readonly subject: MonitoredBackend
  readonly breaker: Breaker | undefined
  status: HealthStatus
  failures: number
  /** Number of consecutive calls that failed because the backend lost their session. */
  lostSessions: number
  lastCheckAt: number | undefined
  lastErrorCategory: string | undefined
  lastTransitionAt: number | undefined
  lastError: BackendHealth['lastError']
  wasAvailable: boolean
  hasResponded: boolean
  checks: number
  /** True while a check that affects only the breaker is in flight. */
  isVerifying: boolean
  cancel: (() => void) | undefined
  isStopped: boolean
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

  /** Starts checking a backend. The first check runs immediately. */
  add(subject: MonitoredBackend): void {
    const { settings, clock, events } = this.#options
    const watch: Watch = {
      subject,
      breaker:
        settings.breaker &&
        new Breaker({
          ...settings.breaker,
          now: clock.now,
          onChange: (before, after) =>
            events.emit('backend_circuit', { backend: subject.name, before, after }),
        }),
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
      isVerifying: false,
      cancel: undefined,
      isStopped: false,
    }
    this.#watches.set(subject.name, watch)
    if (settings.intervalMs > 0) void this.#loop(watch)
  }

  remove(name: string): void {
    const watch = this.#watches.get(name)
    if (!watch) return
    watch.isStopped = true
    watch.cancel?.()
    this.#watches.delete(name)
  }

  close(): void {
    for (const name of this.#watches.keys()) this.remove(name)
  }

  health(name: string): BackendHealth {
    const watch = this.#watches.get(name)
    return watch ? this.#withLocalCause(name, healthOf(watch)) : unknownHealth
  }

  /** Returns the health with the current local cause, which may have changed since the last check. */
  #withLocalCause(name: string, health: BackendHealth): BackendHealth {
    if (health.status === 'healthy' || health.status === 'degraded') return health
    const cause = this.#options.localCause?.(name)
    if (!cause) return health
    const at = health.lastError?.at ?? this.#options.clock.now()
    return { ...health, lastErrorCategory: cause.category, lastError: { ...cause, at } }
  }

  /** False if the backend must not receive requests now. */
  isAvailable(name: string): boolean {
    const { status, breaker } = this.#watches.get(name) ?? {}
    return status !== 'unhealthy' && status !== 'unauthenticated' && breaker?.allows() !== false
  }

  /** Claims the right to send a client request. Returns false, and claims nothing, if `isAvailable` is false. */
  admitCall(name: string): boolean {
    const isAdmitted = this.isAvailable(name)
    if (isAdmitted) this.#watches.get(name)?.breaker?.start()
    return isAdmitted
  }

  /** Claims the right to read lists. Throws BACKEND_UNAVAILABLE while the circuit is open. */
  admit(name: string): void {
    const breaker = this.#watches.get(name)?.breaker
    if (breaker?.allows() === false) throw unavailableError([name])
    breaker?.start()
  }

  /** Records the outcome of a client request. `error` is undefined on success. */
  report(name: string, error: Error | undefined): void {
    const watch = this.#watches.get(name)
    if (!watch) return
    if (error) this.#recordFailedCall(watch, error)
    this.#trackLostSessions(watch, error)
    if (watch.breaker && isTimeout(error)) {
      void this.#verify(watch, watch.breaker)
      return
    }
    if (watch.breaker) reportToBreaker(watch.breaker, error)
    this.#reportAvailability(watch)
  }

  /** Checks a backend after a call timed out, and reports the check's outcome to the breaker. Never rejects. */
  async #verify(watch: Watch, breaker: Breaker): Promise<void> {
    if (watch.isVerifying) return
    watch.isVerifying = true
    const error = await this.#runCheck(watch)
    watch.isVerifying = false
    if (watch.isStopped) return
    if (isTimeout(error)) breaker.failure()
    else reportToBreaker(breaker, error)
    this.#reportAvailability(watch)
  }

  /**
   * Counts calls that failed because the backend lost the session, even if the session had been reopened. A check uses
   * another session and may succeed in the meantime, so only a successful call resets the count.
   */
  #trackLostSessions(watch: Watch, error: Error | undefined): void {
    if (error instanceof GatehouseError && error.code === 'BACKEND_SESSION_LOST') {
      watch.lostSessions++
      watch.lastErrorCategory = sessionLost
      const { status } = watch
      if (this.#losesSessions(watch) && (status === 'healthy' || status === 'unknown'))
        this.#setStatus(watch, 'degraded', { error })
    } else if (!error && watch.lostSessions > 0) {
      const recovered = this.#losesSessions(watch) && watch.status === 'degraded'
      watch.lostSessions = 0
      if (watch.lastErrorCategory === sessionLost) watch.lastErrorCategory = undefined
      if (recovered) this.#setStatus(watch, 'healthy')
    }
  }

  #losesSessions({ lostSessions }: Watch): boolean {
    return lostSessions >= this.#options.settings.unhealthyThreshold
  }

  /** Records a client request with an outcome that is unrelated to the backend's health. */
  release(name: string): void {
    this.#watches.get(name)?.breaker?.release()
  }

  async #loop(watch: Watch): Promise<void> {
    const { settings, clock } = this.#options
    // No checks run while the circuit is open. The next check is the trial request.
    if (watch.breaker?.allows() !== false) {
      watch.breaker?.start()
      await this.check(watch.subject.name)
    }
    if (watch.isStopped) return
    watch.cancel = clock.after(pauseBeforeCheck(watch, settings.intervalMs), () => void this.#loop(watch))
  }

  /** Runs one check now. Never rejects. */
  async check(name: string): Promise<void> {
    const watch = this.#watches.get(name)
    if (!watch) return
    const { clock } = this.#options
    const startedAt = clock.now()
    const error = await this.#runCheck(watch)
    if (error === undefined) this.#recordSuccess(watch, clock.now() - startedAt)
    else this.#recordFailure(watch, error)
    watch.lastCheckAt = clock.now()
    watch.checks++
    if (!watch.isStopped) this.#reportAvailability(watch)
  }

  /** Records and reports a failed client request, unless Gatehouse itself rejected it. */
  #recordFailedCall(watch: Watch, error: Error): void {
    if (error instanceof GatehouseError && error.code === 'BACKEND_UNAVAILABLE') return
    const { category: reason, fix } = causeOf(error, this.#options.server)
    watch.lastError = { category: reason, fix, at: this.#options.clock.now() }
    this.#options.events.emit('backend_call_failed', { backend: watch.subject.name, reason, err: error })
  }

  /** Runs a check within the time limit for checks. Resolves to the error, or to undefined on success. */
  async #runCheck({ subject }: Watch): Promise<Error | undefined> {
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

  #recordSuccess(watch: Watch, tookMs: number): void {
    watch.failures = 0
    watch.lastErrorCategory = watch.lostSessions > 0 ? sessionLost : undefined
    // Failures before the first response are part of the backend's startup.
    if (!watch.hasResponded) watch.lastError = undefined
    watch.breaker?.success()
    this.#setStatus(watch, tookMs > slowMs || this.#losesSessions(watch) ? 'degraded' : 'healthy')
  }

  #recordFailure(watch: Watch, error: Error): void {
    // The backend is busy, or the check was not sent, so the check is inconclusive.
    if (error instanceof GatehouseError && error.code === 'BACKEND_UNAVAILABLE') {
      watch.breaker?.release()
      return
    }
    const refused = isRejection(error)
    if (refused && watch.subject.toleratesRejection) return this.#recordSuccess(watch, 0)
    watch.failures++
    // A check is not sent on behalf of a caller, so every reader of the status may see the backend's explanation.
    const cause = this.#options.localCause?.(watch.subject.name) ?? causeOf(error, this.#options.server)
    const isNews = !isSameCause(watch.lastError, cause)
    watch.lastErrorCategory = cause.category
    watch.lastError = { ...cause, at: this.#options.clock.now() }
    // Only the user can sign in, so further checks would not help.
    const isFinal = error instanceof GatehouseError && error.code === 'BACKEND_SIGN_IN_REQUIRED'
    if (isFinal || watch.failures >= this.#options.settings.unhealthyThreshold)
      this.#setStatus(watch, refused ? 'unauthenticated' : 'unhealthy', { error, cause, isNews })
    if (refused) watch.breaker?.release()
    else watch.breaker?.failure()
  }

  /** Sets the status. Reports a changed status, or a failure with a different cause. */
  #setStatus(watch: Watch, status: HealthStatus, failure: Failure = {}): void {
    const before = watch.status
    if (before === status && !failure.isNews) return
    watch.status = status
    if (before !== status) watch.lastTransitionAt = this.#options.clock.now()
    const { category, exitCode, httpStatus, detail, fix } = failure.cause ?? {}
    this.#options.events.emit('backend_health', {
      backend: watch.subject.name,
      before,
      after: status,
      reason: status === 'healthy' ? undefined : (category ?? watch.lastErrorCategory ?? slowReason),
      detail,
      exit_code: exitCode,
      http_status: httpStatus,
      fix,
      err: failure.error,
    })
  }

  #reportAvailability(watch: Watch): void {
    const available = this.isAvailable(watch.subject.name)
    // If the first response follows failed checks, the backend's items now appear in lists.
    const firstResponse = available && !watch.hasResponded && watch.status !== 'unknown'
    const cameLate = firstResponse && watch.checks > 1
    watch.hasResponded ||= firstResponse
    if (available === watch.wasAvailable && !cameLate) return
    watch.wasAvailable = available
    this.#options.onChange(watch.subject.name)
  }
}

/**
 * Returns the health status that checks and calls have determined. A circuit that is not closed overrides successful
 * checks.
 */
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
