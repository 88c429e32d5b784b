/**
 * Circuit breaker for one peer (a backend or a decision point). Counts consecutive failures, blocks requests while
 * open, and allows one trial request after the timeout.
 * Source: docs/reference/specification/virtual-server.md#operational, operational.failureHandling.circuitBreaker.
 */
export type CircuitState = 'closed' | 'open' | 'half-open'

export interface BreakerOptions {
  readonly failureThreshold: number
  readonly timeoutMs: number
  readonly now: () => number
  /** Called after each state change. */
  readonly onChange?: (before: CircuitState, after: CircuitState) => void
}

export class Breaker {
  readonly #options: BreakerOptions
  #state: CircuitState = 'closed'
  #failures = 0
  #changedAt = 0
  #trial = false

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  get state(): CircuitState {
    return this.#state
  }

  /** Time of the last state change, in milliseconds since the epoch; 0 before the first change. */
  get changedAt(): number {
    return this.#changedAt
  }

  /** Number of consecutive failures. */
  get failures(): number {
    return this.#failures
  }

  /** Returns true if the peer may receive a request now. The half-open state allows one request at a time. */
  allows(): boolean {
    if (this.#state === 'closed') return true
    if (this.#state === 'open') return this.#options.now() >= this.#changedAt + this.#options.timeoutMs
    return !this.#trial
  }

  /** Records a request that is about to be sent. Call this method only after `allows()` has returned true. */
  start(): void {
    if (this.#state === 'closed') return
    if (this.#state === 'open') this.#become('half-open')
    this.#trial = true
  }

  success(): void {
    // Ignores a request that was sent before the circuit opened, because its success does not describe the current
    // state.
    if (this.#state === 'open') return
    this.#failures = 0
    this.#trial = false
    if (this.#state !== 'closed') this.#become('closed')
  }

  failure(): void {
    this.#trial = false
    this.#failures++
    if (this.#state === 'half-open') this.#become('open')
    else if (this.#state === 'closed' && this.#failures >= this.#options.failureThreshold)
      this.#become('open')
  }

  /** Ends a trial without a result, because the client cancelled the request. Allows the next trial. */
  release(): void {
    this.#trial = false
  }

  #become(state: CircuitState): void {
    const before = this.#state
    this.#state = state
    this.#changedAt = this.#options.now()
    this.#options.onChange?.(before, state)
  }
}
