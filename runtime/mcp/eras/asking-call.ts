/**
 * A call for a stateless client. The call can request input from the client. While a session-era server waits for an
 * answer, the client receives `input_required`. The call continues when the client repeats the request with the
 * answers.
 * Source: MCP 2026-07-28, patterns/mrtr.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { JsonObject } from '../json/object.ts'
import { type Abilities, requireAbility } from './abilities.ts'
import { type Ask, type AskReply, inputRequests, statelessQuestion } from './questions.ts'

/** Time in milliseconds during which server requests are collected for one round. */
const gatherMs = 5
const maxQuestions = 32

export type CallStep<T> =
  | { readonly kind: 'done'; readonly outcome: T }
  /** The server requests, as a raw InputRequests object. */
  | { readonly kind: 'ask'; readonly requests: Buffer }

interface Question {
  readonly request: Ask
  resolve(reply: AskReply): void
  reject(error: Error): void
}

export class AskingCall<T> {
  readonly #abilities: Abilities
  readonly #stop: (reason: Error) => void
  readonly #questions = new Map<string, Question>()
  #nextQuestion = 1
  #finished: { outcome: T } | { error: unknown } | undefined
  #wake: (() => void) | undefined
  #gathering: NodeJS.Timeout | undefined
  #hasQuestions = false

  /** `stop` cancels the call's work. */
  constructor(abilities: Abilities, stop: (reason: Error) => void) {
    this.#abilities = abilities
    this.#stop = stop
  }

  /** Ends the call when `work` ends. */
  follow(work: Promise<T>): void {
    work.then(
      (outcome) => this.#finish({ outcome }),
      (error: unknown) => this.#finish({ error }),
    )
  }

  #finish(result: { outcome: T } | { error: unknown }): void {
    this.#finished ??= result
    clearTimeout(this.#gathering)
    this.#wake?.()
  }

  /** Asks the client. Rejects if the request cannot be sent or is withdrawn. */
  ask(request: Ask, signal: AbortSignal | undefined): Promise<AskReply> {
    try {
      requireAbility(this.#abilities, request)
    } catch (error) {
      // The error names the missing capability. The client must receive this error, so the whole request fails with the
      // error.
      const reason = error instanceof Error ? error : new Error('cancelled')
      this.#finish({ error: reason })
      this.#stop(reason)
      return Promise.reject(reason)
    }
    if (this.#questions.size >= maxQuestions) {
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many concurrent questions' }))
    }
    const key = `ask-${this.#nextQuestion++}`
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { request: statelessQuestion(request), resolve, reject })
      // A withdrawn request is not sent again, and answers to it are ignored.
      signal?.addEventListener(
        'abort',
        () => {
          if (this.#questions.delete(key)) reject(new Error('the question was withdrawn'))
        },
        { once: true },
      )
      this.#gathering ??= setTimeout(() => {
        this.#gathering = undefined
        this.#hasQuestions = true
        this.#wake?.()
      }, gatherMs)
    })
  }

  /** Waits for the next step, which is the outcome or a set of server requests. Rejects if the work rejects. */
  async step(): Promise<CallStep<T>> {
    if (!this.#finished && !this.#hasQuestions) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
    if (this.#finished) {
      if ('outcome' in this.#finished) return { kind: 'done', outcome: this.#finished.outcome }
      throw this.#finished.error
    }
    this.#hasQuestions = false
    const questions = [...this.#questions].map(([key, { request }]): [string, Ask] => [key, request])
    return { kind: 'ask', requests: inputRequests(questions) }
  }

  /** Forwards the client's answers to the waiting call. Requests that are still open are sent again. */
  response(responses: JsonObject | undefined): void {
    for (const [key, question] of this.#questions) {
      const raw = responses?.raw(key)
      if (raw?.[0] !== 0x7b) continue
      this.#questions.delete(key)
      question.resolve({ result: Buffer.from(raw) })
    }
    if (this.#questions.size > 0) {
      this.#hasQuestions = true
      this.#wake?.()
    }
  }

  cancel(reason: Error): void {
    for (const question of this.#questions.values()) question.reject(reason)
    this.#questions.clear()
    this.#stop(reason)
    this.#finish({ error: reason })
  }
}
