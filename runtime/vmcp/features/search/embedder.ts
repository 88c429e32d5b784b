/**
 * Provides vectors for tools and queries while the embedding service is available.
 *
 * Tool vectors are cached up to a limit, keyed by a hash of the text, provider, address and model. After each batch of
 * requests, the embedder queries the model again. If the model has changed, the embedder repeats all requests once. A
 * second change is an error. While the model is unknown, vectors are used but not cached.
 *
 * After a failure, the state is `failing`. Searches then do not wait for the service, and probes with increasing delays
 * run until the service responds. The start and the end of a failure are each logged once.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer (embeddingService,
 * embeddingServiceTimeout).
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Log } from '../../../net/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { EmbeddingError, type EmbeddingService, type ServiceFacts } from './embedding-service.ts'

export interface Vectors {
  /** The model that created the vectors, if the model is known. */
  readonly model: string | undefined
  /** One vector for each text, in the order of the texts. All vectors have the same length. */
  readonly list: readonly Float32Array[]
}

export interface QueryVector {
  readonly vector: Float32Array
  /** The service's model when the vector was created, if the model was known. */
  readonly model: string | undefined
}

export interface EmbedderOptions {
  readonly service: EmbeddingService
  /** Identifies the service. Vectors from different services must not be mixed. */
  readonly identity: string
  readonly clock: Clock
  readonly log: Log
  /** Completes pending work when the service is retried. Never rejects. */
  readonly retry: () => Promise<void>
}

const cacheBytes = 64 * 1_048_576
const bytesPerNumber = 4
/** Number of requests between two model checks. */
const runRequests = 8
const firstPauseMs = 1_000
const longestPauseMs = 60_000
const modelCheckMs = 30_000
const keyVersion = '1'

export class Embedder {
  readonly #options: EmbedderOptions
  readonly #cache = new LRUCache<string, Float32Array>({
    maxSize: cacheBytes,
    sizeCalculation: (vector) => vector.length * bytesPerNumber + 128,
  })
  readonly #end = new AbortController()
  #model: string | undefined
  #modelAskedAt = Number.NEGATIVE_INFINITY
  #failing = false
  /** Number of requests that the service has answered. */
  #responses = 0
  #pauseMs = firstPauseMs
  #recoveredAt = Number.NEGATIVE_INFINITY
  #cancelRetry: (() => void) | undefined
  #closing: Promise<void> | undefined

  constructor(options: EmbedderOptions) {
    this.#options = options
  }

  /** True while searches should not wait for the service. */
  get failing(): boolean {
    return this.#failing
  }

  /** The model that created the last response, if the service reports its model. */
  get model(): string | undefined {
    return this.#model
  }

  /**
   * Returns tool vectors. If other vectors exist, `length` is the required length. The work continues until the
   * embedder closes, because several clients may wait for the vectors. Rejects with EmbeddingError.
   */
  async ofTools(texts: readonly string[], length?: number): Promise<Vectors> {
    const { signal } = this.#end
    return this.#watched(signal, async () => {
      for (let attempt = 0; attempt < 2; attempt++) {
        const vectors = await this.#attempt(texts, length, signal).catch(ofService)
        if (vectors) return vectors
      }
      throw new EmbeddingError('the embedding model changed during 2 consecutive attempts')
    })
  }

  /** Returns a query's vector. Rejects with EmbeddingError or the signal's reason. */
  async ofQuery(text: string, signal: AbortSignal): Promise<QueryVector> {
    this.#lookAtModel()
    const either = AbortSignal.any([signal, this.#end.signal])
    return this.#watched(either, async () => {
      // A rejected query is the client's fault and must not disable the service for other clients.
      const [vector] = await this.#embed([text], 1, either)
      if (!vector) throw new EmbeddingError('the embedding service returned no vector')
      return { vector, model: this.#model }
    })
  }

  /** Makes one attempt. Returns undefined if the model has changed in the meantime. */
  async #attempt(
    texts: readonly string[],
    wanted: number | undefined,
    signal: AbortSignal,
  ): Promise<Vectors | undefined> {
    const facts = await this.#facts(signal)
    const model = this.#model
    const known = texts.map((text) => this.#cache.get(this.#key(model, text)))
    const missing = texts.filter((_, i) => known[i] === undefined)
    const made = await this.#make(missing, facts, signal)
    if (!made) return undefined
    const length =
      made.values().next().value?.length ?? wanted ?? known.find((vector) => vector !== undefined)?.length
    const stale = texts.filter((_, i) => known[i] !== undefined && known[i]?.length !== length)
    if (stale.length > 0) {
      for (const text of stale) this.#cache.delete(this.#key(model, text))
      const again = await this.#make(stale, facts, signal)
      if (!again) return undefined
      for (const [text, vector] of again) made.set(text, vector)
    }
    const list = texts.map((text, i) => made.get(text) ?? known[i] ?? new Float32Array())
    if (list.some((vector) => vector.length !== (wanted ?? list[0]?.length)))
      throw new EmbeddingError('the embedding service returned vectors of different lengths')
    return { model, list }
  }

  /**
   * Embeds texts in batches. Returns undefined if the model has changed. Vectors from a successful batch are kept even
   * if a later batch fails.
   */
  async #make(
    texts: readonly string[],
    facts: ServiceFacts,
    signal: AbortSignal,
  ): Promise<Map<string, Float32Array> | undefined> {
    const made = new Map<string, Float32Array>()
    const model = this.#model
    const size = facts.batch * runRequests
    for (let from = 0; from < texts.length; from += size) {
      const run = texts.slice(from, from + size)
      const vectors = await this.#embed(run, facts.batch, signal)
      const after = await this.#facts(signal)
      if (this.#model !== model) return undefined
      for (const [i, vector] of vectors.entries()) {
        const text = run[i] ?? ''
        made.set(text, vector)
        if (facts.model !== undefined && after.model !== undefined)
          this.#cache.set(this.#key(model, text), vector)
      }
    }
    return made
  }

  async #facts(signal: AbortSignal): Promise<ServiceFacts> {
    this.#modelAskedAt = this.#options.clock.now()
    const facts = await this.#options.service.facts(signal)
    if (facts.model !== undefined) this.#model = facts.model
    return facts
  }

  /** Occasionally checks for a changed model, in parallel with searches. */
  #lookAtModel(): void {
    if (this.#failing || this.#options.clock.now() - this.#modelAskedAt < modelCheckMs) return
    this.#facts(this.#end.signal).catch(() => {})
  }

  #key(model: string | undefined, text: string): string {
    const parts = [keyVersion, this.#options.identity, model ?? '', text]
    return hash('sha256', parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(''), 'base64url')
  }

  async #embed(texts: readonly string[], batch: number, signal: AbortSignal): Promise<Float32Array[]> {
    const vectors = await this.#options.service.embed(texts, batch, signal)
    this.#responses++
    return vectors
  }

  /**
   * Records the outcome of a call. Does not record a call that its caller cancelled or that did not use the service.
   */
  async #watched<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const responses = this.#responses
    try {
      const result = await work()
      if (this.#responses > responses) this.#recovered()
      return result
    } catch (error) {
      if (!signal.aborted && !(error instanceof EmbeddingError && error.ofInput)) this.#failed(error)
      throw error
    }
  }

  #failed(error: unknown): void {
    if (this.#end.signal.aborted) return
    if (!this.#failing) {
      this.#failing = true
      // A service that recovers only briefly must not reset the delay.
      if (this.#options.clock.now() - this.#recoveredAt > longestPauseMs) this.#pauseMs = firstPauseMs
      this.#options.log.warn('the embedding service is failing; tools are searched by keyword only', {
        err: error,
      })
    }
    if (this.#cancelRetry) return
    this.#cancelRetry = this.#options.clock.after(this.#pauseMs, () => {
      this.#cancelRetry = undefined
      this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs)
      void this.#probe()
    })
  }

  #recovered(): void {
    if (!this.#failing) return
    this.#failing = false
    this.#recoveredAt = this.#options.clock.now()
    this.#cancelRetry?.()
    this.#cancelRetry = undefined
    this.#options.log.info('the embedding service is available again')
  }

  /** Probes the service. Never rejects. Afterwards, either the service works or another retry is scheduled. */
  async #probe(): Promise<void> {
    await this.#options.retry()
    if (!this.#failing || this.#cancelRetry) return
    try {
      await this.ofQuery('ping', this.#end.signal)
    } catch (error) {
      this.#failed(error)
    }
  }

  close(): Promise<void> {
    this.#end.abort(new Error('tool search is closed'))
    this.#cancelRetry?.()
    this.#closing ??= this.#options.service.close()
    return this.#closing
  }
}

/** All callers share the same tools, so a service that rejects these tools is currently unusable. */
function ofService(error: unknown): never {
  throw error instanceof EmbeddingError ? new EmbeddingError(error.message, { cause: error }) : error
}
