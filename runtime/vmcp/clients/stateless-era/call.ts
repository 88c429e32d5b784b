/**
 * A stateless client's call, which can pause for input. While a session-era backend waits for an answer, the client has
 * already received `input_required`. The call is parked until the client repeats the request with the answers. The
 * parked call then continues.
 *
 * The number of parked calls is bounded, in total and for each caller. Parked calls expire.
 * Source: MCP 2026-07-28, patterns/mrtr; ARCHITECTURE.md, "Two protocol eras".
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import { AskingCall, type JsonObject, type CallStep } from '../../../mcp/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { Operation, Perform } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import { isShared } from '../../model/client.ts'
import type { LiveOperation, OperationSink } from '../live-operation.ts'

export class StatelessCall {
  #id: string | undefined
  readonly owner: string
  readonly live: LiveOperation
  readonly #asking: AskingCall<Outcome>

  /** Starts the operation. `makeOperation` receives the function that asks the client. */
  constructor(owner: string, makeOperation: (ask: OperationSink['ask']) => LiveOperation, perform: Perform) {
    this.owner = owner
    const live = makeOperation((request, signal) => this.#asking.ask(request, signal))
    this.live = live
    this.#asking = new AskingCall(this.operation.client.abilities, (reason) => live.cancel(reason))
    this.#asking.follow(perform(this.operation))
  }

  get operation(): Operation {
    return this.live.operation
  }

  /** Identifies the call while it is parked. */
  get id(): string {
    return (this.#id ??= randomUUID())
  }

  /** Waits for the outcome, or for requests for input. Rejects with the operation's error. */
  step(): Promise<CallStep<Outcome>> {
    return this.#asking.step()
  }

  /** Accepts the client's answers. Unanswered requests are sent again. */
  acceptAnswers(responses: JsonObject | undefined): void {
    this.#asking.response(responses)
  }

  cancel(reason: Error): void {
    this.#asking.cancel(reason)
  }
}

export interface ParkedOptions {
  readonly max: number
  readonly maxPerCaller: number
  readonly ttlMs: number
  readonly clock: Clock
}

export class ParkedCalls {
  readonly #options: ParkedOptions
  readonly #calls = new Map<string, { call: StatelessCall; cancelTimer: () => void }>()
  readonly #perCaller = new Map<string, number>()

  constructor(options: ParkedOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#calls.size
  }

  /** Parks a call. Cancels the call and throws RATE_LIMITED if too many calls are parked. */
  park(call: StatelessCall): void {
    const callerCount = this.#perCaller.get(call.owner) ?? 0
    const { max, maxPerCaller } = this.#options
    const limit = isShared(call.operation.client.caller) ? max : maxPerCaller
    if (this.#calls.size >= max || callerCount >= limit) {
      const error = new GatehouseError('RATE_LIMITED', {
        detail: 'too many requests are waiting for answers',
      })
      call.cancel(error)
      throw error
    }
    const cancelTimer = this.#options.clock.after(this.#options.ttlMs, () => {
      this.take(call.id, call.owner)?.cancel(
        new GatehouseError('BACKEND_TIMEOUT', { detail: 'the client did not answer in time' }),
      )
    })
    this.#calls.set(call.id, { call, cancelTimer })
    this.#perCaller.set(call.owner, callerCount + 1)
  }

  /** Removes and returns a parked call. Returns undefined if the call is unknown or has another owner. */
  take(id: string, owner: string): StatelessCall | undefined {
    const parked = this.#calls.get(id)
    if (parked?.call.owner !== owner) return undefined
    this.#calls.delete(id)
    parked.cancelTimer()
    const left = (this.#perCaller.get(owner) ?? 1) - 1
    if (left > 0) this.#perCaller.set(owner, left)
    else this.#perCaller.delete(owner)
    return parked.call
  }

  close(reason: Error): void {
    for (const { call } of this.#calls.values()) this.take(call.id, call.owner)?.cancel(reason)
  }
}
