/**
 * Searches a set of tools by keywords, by meaning, or by both.
 *
 * Keyword search always works. Semantic search is skipped while the embedding service is failing or too slow, and while
 * vectors for a new set of tools are being created. Such a response is based on keywords only and is marked as
 * degraded. Service failures never cause a rejection.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.
 */
import { hash } from 'node:crypto'
import type { Log } from '../../../net/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { Embedder, type QueryVector, type Vectors } from './embedder.ts'
import { openEmbeddingService } from './embedding-service.ts'
import { fuse } from './fusion.ts'
import { Indexes } from './indexes.ts'
import { nearest } from './nearest.ts'
import type { SearchSettings } from './settings.ts'
import type { IndexedTool, ToolIndex } from './tool-index.ts'
import type { VisibleTools } from './visible-tools.ts'
import { searchWords } from './words.ts'

export interface Query {
  /** The client's task. */
  readonly description: string
  /** Keywords chosen by the client. */
  readonly keywords: readonly string[]
}

export interface Found {
  readonly tools: readonly IndexedTool[]
  /** Number of tokens in all tools that were searched. */
  readonly tokens: number
  /** True if semantic search was configured but skipped. */
  readonly degraded: boolean
}

export interface ToolSearchOptions {
  readonly settings: SearchSettings
  /** Names that searches never return. */
  readonly hidden: ReadonlySet<string>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Maximum time in milliseconds for which searches wait for a set's vectors, measured from the start of their creation.
 */
const maxWaitMs = 5_000

export class ToolSearch {
  readonly #settings: SearchSettings
  readonly #clock: Clock
  readonly #indexes: Indexes
  readonly #embedder: Embedder | undefined

  constructor({ settings, hidden, clock, log }: ToolSearchOptions) {
    this.#settings = settings
    this.#clock = clock
    this.#indexes = new Indexes(hidden)
    const { service } = settings
    this.#embedder =
      service &&
      new Embedder({
        service: openEmbeddingService(service),
        identity: hash('sha256', JSON.stringify([service.protocol, service.url, service.model]), 'hex'),
        clock,
        log,
        retry: () => this.#retry(),
      })
  }

  /** True while semantic search is configured but unavailable. */
  get degraded(): boolean {
    return this.#embedder?.failing ?? false
  }

  /** True for a tool in a cached set. */
  knows(name: string): boolean {
    for (const { names } of this.#indexes.all()) if (names.has(name)) return true
    return false
  }

  /** Prepares the index of a set before the set is searched. */
  async prepare(visible: VisibleTools): Promise<void> {
    const index = await this.#indexes.of(visible)
    if (this.#embedder && !this.#embedder.failing) await this.#vectorsOf(this.#embedder, index)
  }

  /** Searches a set of tools. Rejects only with the signal's reason. */
  async find(visible: VisibleTools, query: Query, signal: AbortSignal): Promise<Found> {
    const { maxTools, semanticRatio } = this.#settings
    const index = await this.#indexes.of(visible)
    const byWords = index.keywords.search(searchWords(query.description, query.keywords), maxTools)
    // An empty description cannot be searched by meaning.
    const embedder = query.description.trim() === '' ? undefined : this.#embedder
    const byMeaning = embedder && (await this.#byMeaning(embedder, index, query.description, signal))
    signal.throwIfAborted()
    const positions = byMeaning ? fuse(byMeaning, byWords, semanticRatio, maxTools) : byWords
    return {
      tools: positions.flatMap((at) => index.tools[at] ?? []),
      tokens: index.tokens,
      degraded: embedder !== undefined && byMeaning === undefined,
    }
  }

  /** Searches by meaning. Returns undefined if semantic search is not possible. */
  async #byMeaning(
    embedder: Embedder,
    index: ToolIndex,
    description: string,
    signal: AbortSignal,
  ): Promise<number[] | undefined> {
    if (embedder.failing) return undefined
    const { maxDistance, maxTools } = this.#settings
    // Both promises run concurrently, and neither rejects.
    const making = this.#vectorsInTime(embedder, index)
    const query = await queryVector(embedder, description, signal)
    if (!query) return undefined
    const vectors = await making
    if (!vectors) return undefined
    // The model has changed in the meantime, so embed the query again.
    const { vector } = isFrom(vectors, query.model)
      ? query
      : ((await queryVector(embedder, description, signal)) ?? query)
    if (vectors.list[0] !== undefined && vectors.list[0].length !== vector.length) {
      if (index.vectors === vectors) index.vectors = undefined
      void this.#vectorsOf(embedder, index, vector.length)
      return undefined
    }
    return nearest(vector, vectors.list, maxDistance, maxTools)
  }

  /** Returns a set's vectors. Returns undefined if the vectors are not available in time. Never rejects. */
  async #vectorsInTime(embedder: Embedder, index: ToolIndex): Promise<Vectors | undefined> {
    const vectors = this.#vectorsOf(embedder, index)
    const since = index.embedding?.since
    if (since === undefined) return vectors
    const left = since + maxWaitMs - this.#clock.now()
    if (left <= 0) return undefined
    let stop = (): void => {}
    const late = new Promise<undefined>((resolve) => {
      stop = this.#clock.after(left, () => resolve(undefined))
    })
    try {
      return await Promise.race([vectors, late])
    } finally {
      stop()
    }
  }

  /**
   * Creates a set's vectors unless the vectors exist or are being created. Returns undefined after a failure. Never
   * rejects.
   */
  async #vectorsOf(embedder: Embedder, index: ToolIndex, length?: number): Promise<Vectors | undefined> {
    const { vectors } = index
    if (vectors && isFrom(vectors, embedder.model)) return vectors
    if (index.embedding) return index.embedding.done
    index.vectors = undefined
    const texts = index.tools.map(({ text }) => text)
    const done = embedder.ofTools(texts, length).then(
      (made) => {
        index.vectors = made
        return made
      },
      () => undefined,
    )
    index.embedding = { since: this.#clock.now(), done }
    return done.finally(() => {
      index.embedding = undefined
    })
  }

  /**
   * Creates vectors for the most recently used set that has no vectors. Vectors for any other set are created when the
   * set is searched.
   */
  async #retry(): Promise<void> {
    for (const index of this.#indexes.all()) {
      if (index.vectors || !this.#embedder) continue
      await this.#vectorsOf(this.#embedder, index)
      return
    }
  }

  async close(): Promise<void> {
    this.#indexes.close()
    await this.#embedder?.close()
  }
}

async function queryVector(
  embedder: Embedder,
  description: string,
  signal: AbortSignal,
): Promise<QueryVector | undefined> {
  try {
    return await embedder.ofQuery(description, signal)
  } catch {
    // The embedder has already recorded the failure.
    return undefined
  }
}

function isFrom({ model }: Vectors, present: string | undefined): boolean {
  return model === undefined || present === undefined || model === present
}
