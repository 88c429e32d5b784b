/**
 * A large response of a backend on its way: goes to the client while it arrives, as far as a splitter lets it go, and is held
 * for those who read it whole as long as nothing has gone on.
 */
import type { Message, ResultSplitter, SseData } from '../../../mcp/index.ts'
import { Pieces } from '../../../net/index.ts'

/** Bytes that wait for their turn. */
export interface ArrivedPart {
  readonly of: ArrivingResult
  readonly bytes: Buffer
}

export class ArrivingResult implements SseData {
  readonly #splitter: ResultSplitter
  readonly #enqueue: (part: ArrivedPart) => void
  #held = new Pieces()

  /** `enqueue` has parts taken one after the other, by `take`. */
  constructor(splitter: ResultSplitter, enqueue: (part: ArrivedPart) => void) {
    this.#splitter = splitter
    this.#enqueue = enqueue
  }

  push(bytes: Buffer): void {
    if (!this.#splitter.isPassing) this.#held.add(bytes)
    if (!this.#splitter.isGivenUp) this.#enqueue({ of: this, bytes })
  }

  /** Settled when the client takes more. Throws JsonError. */
  take(bytes: Buffer): Promise<void> | undefined {
    const more = this.#splitter.push(bytes)
    if (this.#splitter.isPassing && this.#held.size > 0) this.#held = new Pieces()
    return more
  }

  /** The response when a part of it has gone on; all parts have been taken. Throws JsonError, MessageError. */
  end(): Message | undefined {
    return this.#splitter.end()
  }

  /** What is held of it: all, while nothing has gone on. */
  get held(): Pieces {
    return this.#held
  }
}
