/**
 * The decision point as the gate sees it: caches decisions and reports query results to observers. The cache never
 * contains a failure, and a failure never becomes a decision.
 * Source: docs/guides/decision-point.md.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { timerMs } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import { Inquiry, type InquiryEvent } from '../remote/inquiry.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { type DecisionClient, makeDecisionClient } from './client.ts'
import type { Question } from './format.ts'
import type { ExternalPoint } from './formats.ts'

/** Result of one query. */
export type PointEvent =
  | { readonly kind: 'decision'; readonly allow: boolean; readonly cached: boolean; readonly ms: number }
  | InquiryEvent

type Observe = (event: PointEvent) => void
type Batch = NonNullable<DecisionClient['batch']>

/** Statuses that a decision point without the optional batch endpoint returns. */
const noBatch: ReadonlySet<number | undefined> = new Set([404, 405, 501])
/** Milliseconds until batches are tried again. */
const noBatchMs = 10 * 60_000

export class AskedPoint {
  readonly #client: DecisionClient
  readonly #inquiry: Inquiry
  readonly #known: LRUCache<string, boolean> | undefined
  readonly #observe: Observe
  #singleUntil = 0

  /** Throws INVALID_CONFIG when a file cannot be used. */
  constructor(point: ExternalPoint, observe: Observe, log: Log) {
    const { http, cache, circuitBreaker } = point.settings
    this.#client = makeDecisionClient(point, log)
    this.#known = cache && new LRUCache({ max: cache.maxEntries, ttl: timerMs(cache.ttl) })
    this.#inquiry = new Inquiry({
      who: 'the decision point',
      timeout: http.timeout,
      circuitBreaker,
      observe,
    })
    this.#observe = observe
  }

  /** Maximum number of queries in one batch; all of them concern the same list. */
  get together(): number {
    return this.#batch()?.most ?? 1
  }

  /**
   * True when the decision point allows the request; `caller` is the caller's key. Rejects with DecisionFailure, or
   * with the signal's reason.
   */
  async decide(question: Question, caller: string, signal?: AbortSignal): Promise<boolean> {
    const held = this.#cachedDecision(question)
    if (held !== undefined) return held
    const { answer, ms } = await this.#inquiry.ask(caller, signal, () => this.#client.ask(question, signal))
    this.#cacheDecision(question, answer, ms)
    return answer
  }

  /**
   * Returns one decision per query; undefined for a missing decision. Rejects with the same errors as `decide` if all
   * decisions are missing.
   */
  async decideAll(
    questions: readonly Question[],
    caller: string,
    signal: AbortSignal,
  ): Promise<readonly (boolean | undefined)[]> {
    const [only] = questions
    const batch = this.#batch()
    if (only && (questions.length === 1 || !batch)) return this.#oneByOne(questions, caller, signal)
    const held = questions.map((question) => this.#cachedDecision(question))
    const open = questions.filter((_, at) => held[at] === undefined)
    if (open.length === 0 || !batch) return held
    const answers = await this.#askAll(batch, open, caller, signal)
    const next = answers.values()
    return held.map((one) => one ?? next.next().value)
  }

  async close(): Promise<void> {
    this.#inquiry.close()
    await this.#client.close()
  }

  #batch(): Batch | undefined {
    return Date.now() < this.#singleUntil ? undefined : this.#client.batch
  }

  async #askAll(
    batch: Batch,
    questions: readonly Question[],
    caller: string,
    signal: AbortSignal,
  ): Promise<readonly (boolean | undefined)[]> {
    try {
      const { answer, ms } = await this.#inquiry.ask(caller, signal, async () => {
        const answers = await batch.ask(questions, signal)
        if (answers.some((one) => one !== undefined)) return answers
        throw new DecisionFailure('malformed', 'the response from the decision point contains no decision')
      })
      this.#cacheDecisions(questions, answer, ms)
      return answer
    } catch (error) {
      if (!(error instanceof DecisionFailure) || !noBatch.has(error.status)) throw error
      this.#singleUntil = Date.now() + noBatchMs
      return this.#oneByOne(questions, caller, signal)
    }
  }

  async #oneByOne(
    questions: readonly Question[],
    caller: string,
    signal: AbortSignal,
  ): Promise<readonly (boolean | undefined)[]> {
    const answers: (boolean | undefined)[] = []
    let failure: DecisionFailure | undefined
    for (const question of questions) {
      try {
        answers.push(await this.decide(question, caller, signal))
      } catch (error) {
        if (!(error instanceof DecisionFailure)) throw error
        failure = error
        answers.push(undefined)
      }
    }
    if (failure && answers.every((one) => one === undefined)) throw failure
    return answers
  }

  #cachedDecision(question: Question): boolean | undefined {
    const held = this.#known?.get(keyOf(question))
    if (held !== undefined) this.#observe({ kind: 'decision', allow: held, cached: true, ms: 0 })
    return held
  }

  #cacheDecision(question: Question, allow: boolean, ms: number): void {
    this.#observe({ kind: 'decision', allow, cached: false, ms })
    this.#known?.set(keyOf(question), allow)
  }

  #cacheDecisions(
    questions: readonly Question[],
    answers: readonly (boolean | undefined)[],
    ms: number,
  ): void {
    // Reports the duration of a batch once.
    let took = ms
    let missing = 0
    for (const [at, question] of questions.entries()) {
      const allow = answers[at]
      if (allow === undefined) missing++
      else {
        this.#cacheDecision(question, allow, took)
        took = 0
      }
    }
    if (missing === 0) return
    const error = new DecisionFailure(
      'malformed',
      `the response from the decision point lacks ${missing} of ${questions.length} decisions`,
    )
    this.#observe({ kind: 'failure', reason: 'malformed', error, ms: 0 })
  }
}

function keyOf({ text }: Question): string {
  return hash('sha256', text, 'base64url')
}
