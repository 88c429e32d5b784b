/**
 * Circuit breaker of one peer (a backend, a decision point): counts consecutive failures, keeps requests away while open,
 * and lets one trial through when the time is over.
 * Source: docs/reference/specification/virtual-server.md#operational, operational.failureHandling.circuitBreaker.
 */
export type CircuitState = 'closed' | 'open' | 'half-open'

export interface BreakerOptions {
  readonly failureThreshold: number
  readonly timeoutMs: number
  readonly now: () => number
  /** Told when the state has changed. */
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

  /** Time of the last change of state, milliseconds since the epoch; 0: never. */
  get changedAt(): number {
    return this.#changedAt
  }

  /** Number of consecutive failures. */
  get failures(): number {
    return this.#failures
  }

  /** True when a request may go out now. In the half-open state that is one at a time. */
  allows(): boolean {
    if (this.#state === 'closed') return true
    if (this.#state === 'open') return this.#options.now() >= this.#changedAt + this.#options.timeoutMs
    return !this.#trial
  }

  /** A request goes out; call only when `allows`. */
  start(): void {
    if (this.#state === 'closed') return
    if (this.#state === 'open') this.#become('half-open')
    this.#trial = true
  }

  success(): void {
    // A request that was sent before the circuit opened says nothing of the time since.
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

  /** A request ended in a way that says nothing of the peer (the client gave it up): another may try. */
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
