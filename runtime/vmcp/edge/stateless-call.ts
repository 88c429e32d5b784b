/**
 * A call of a stateless client that may stop to ask. While a session-era backend waits for an answer, the client has
 * already been told `input_required`; the call is parked here until the client sends the request again with the
 * answers, and then goes on where it stopped.
 *
 * The table of parked calls is bounded in number (overall and for one caller) and in time.
 * Source: MCP 2026-07-28, patterns/mrtr; design, section 3 "Eras".
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Clock } from '../clock.ts'
import type { Ask, AskReply, Outcome } from '../operation.ts'
import { requireAbility } from '../sessions/session.ts'
import { isShared } from './client.ts'
import type { LiveOperation, OperationSink } from './live-operation.ts'

/** Questions that come this close together are asked in one round. */
const GATHER_MS = 5
const MAX_QUESTIONS = 32

export type Step =
  | { readonly kind: 'done'; readonly outcome: Outcome }
  /** Raw InputRequests object. */
  | { readonly kind: 'ask'; readonly requests: Buffer }

interface Question {
  readonly request: Ask
  resolve(reply: AskReply): void
  reject(error: Error): void
}

export class StatelessCall {
  readonly id: string = randomUUID()
  readonly owner: string
  readonly operation: LiveOperation
  readonly #questions = new Map<string, Question>()
  #nextQuestion = 1
  #finished: { outcome?: Outcome; error?: unknown } | undefined
  #wake: (() => void) | undefined
  #gathering: NodeJS.Timeout | undefined
  #asked = false

  /** Starts at once. `makeOperation` gets the sink that leads back here. */
  constructor(
    owner: string,
    makeOperation: (ask: OperationSink['ask']) => LiveOperation,
    perform: (operation: LiveOperation) => Promise<Outcome>,
  ) {
    this.owner = owner
    this.operation = makeOperation((request, signal) => this.#ask(request, signal))
    perform(this.operation).then(
      (outcome) => this.#finish({ outcome }),
      (error: unknown) => this.#finish({ error }),
    )
  }

  #finish(result: { outcome?: Outcome; error?: unknown }): void {
    this.#finished ??= result
    clearTimeout(this.#gathering)
    this.#wake?.()
  }

  #ask(request: Ask, signal: AbortSignal | undefined): Promise<AskReply> {
    try {
      requireAbility(this.operation.client.abilities, request)
    } catch (error) {
      // The client has to know which ability it lacks: that is how the whole request ends.
      this.#finish({ error })
      this.operation.cancel(error instanceof Error ? error : new Error('cancelled'))
      return Promise.reject(error instanceof Error ? error : new Error('cancelled'))
    }
    if (this.#questions.size >= MAX_QUESTIONS) {
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many questions at a time' }))
    }
    const key = `ask-${this.#nextQuestion++}`
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { request: statelessQuestion(request), resolve, reject })
      // One that was withdrawn is not asked again; an answer to it is ignored.
      signal?.addEventListener(
        'abort',
        () => {
          if (this.#questions.delete(key)) reject(new Error('the question was withdrawn'))
        },
        { once: true },
      )
      this.#gathering ??= setTimeout(() => {
        this.#gathering = undefined
        this.#asked = true
        this.#wake?.()
      }, GATHER_MS)
    })
  }

  /** What comes next: the end, or questions. Rejects with what the operation was rejected with. */
  async step(): Promise<Step> {
    if (!this.#finished && !this.#asked) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
    if (this.#finished) {
      if (this.#finished.outcome) return { kind: 'done', outcome: this.#finished.outcome }
      throw this.#finished.error
    }
    this.#asked = false
    return { kind: 'ask', requests: this.#render() }
  }

  #render(): Buffer {
    const members = [...this.#questions].map(([key, { request }]) => {
      const params = request.params === undefined ? '' : `,"params":${request.params.toString()}`
      return `"${key}":{"method":${JSON.stringify(request.method)}${params}}`
    })
    return Buffer.from(`{${members.join(',')}}`)
  }

  /** Hands over the client's answers; questions that are still open are asked again. */
  answer(responses: JsonObject | undefined): void {
    for (const [key, question] of this.#questions) {
      const raw = responses?.raw(key)
      if (raw?.[0] !== 0x7b) continue
      this.#questions.delete(key)
      question.resolve({ result: Buffer.from(raw) })
    }
    if (this.#questions.size > 0) {
      this.#asked = true
      this.#wake?.()
    }
  }

  cancel(reason: Error): void {
    for (const question of this.#questions.values()) question.reject(reason)
    this.#questions.clear()
    this.operation.cancel(reason)
    this.#finish({ error: reason })
  }
}

/** A question as the stateless era puts it: without an id of its own, and never as a task. */
function statelessQuestion({ method, params }: Ask): Ask {
  if (params?.[0] !== 0x7b) return { method, params }
  const asked = new JsonObject(params)
  const changes: Record<string, undefined> = {}
  for (const member of ['elicitationId', 'task']) if (asked.raw(member)) changes[member] = undefined
  return Object.keys(changes).length === 0 ? { method, params } : { method, params: asked.with(changes) }
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

  /** Throws RATE_LIMITED, and cancels the call, when there is no room. */
  park(call: StatelessCall): void {
    const own = this.#perCaller.get(call.owner) ?? 0
    const { max, maxPerCaller } = this.#options
    const limit = isShared(call.operation.client.caller) ? max : maxPerCaller
    if (this.#calls.size >= max || own >= limit) {
      const error = new GatehouseError('RATE_LIMITED', { detail: 'too many requests wait for answers' })
      call.cancel(error)
      throw error
    }
    const cancelTimer = this.#options.clock.after(this.#options.ttlMs, () => {
      this.take(call.id, call.owner)?.cancel(
        new GatehouseError('BACKEND_TIMEOUT', { detail: 'the client did not answer in time' }),
      )
    })
    this.#calls.set(call.id, { call, cancelTimer })
    this.#perCaller.set(call.owner, own + 1)
  }

  /** Takes a call out; only its owner can. */
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
