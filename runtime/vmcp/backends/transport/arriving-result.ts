/**
 * A large backend response that is streamed to the client as it arrives. Until the splitter has sent the first part,
 * the response is also buffered and can still be read whole.
 */
import type { Message, ResultSplitter, SseData } from '../../../mcp/index.ts'
import { Pieces } from '../../../net/index.ts'

/** Response bytes that are waiting to be processed. */
export interface ArrivedPart {
  readonly result: ArrivingResult
  readonly bytes: Buffer
}

export class ArrivingResult implements SseData {
  readonly #splitter: ResultSplitter
  readonly #enqueue: (part: ArrivedPart) => void
  #buffered = new Pieces()

  /** `enqueue` queues parts. The queue passes one part at a time to `take`. */
  constructor(splitter: ResultSplitter, enqueue: (part: ArrivedPart) => void) {
    this.#splitter = splitter
    this.#enqueue = enqueue
  }

  push(bytes: Buffer): void {
    if (!this.#splitter.isPassing) this.#buffered.add(bytes)
    if (!this.#splitter.isGivenUp) this.#enqueue({ result: this, bytes })
  }

  /** Passes bytes to the splitter. The promise settles once the client can receive more data. Throws JsonError. */
  take(bytes: Buffer): Promise<void> | undefined {
    const more = this.#splitter.push(bytes)
    if (this.#splitter.isPassing && this.#buffered.size > 0) this.#buffered = new Pieces()
    return more
  }

  /**
   * Returns the response if any part of it was streamed. Call this method after all parts have been taken. Throws
   * JsonError or MessageError.
   */
  end(): Message | undefined {
    return this.#splitter.end()
  }

  /** The buffered response. The buffer is complete as long as no part has been streamed. */
  get buffered(): Pieces {
    return this.#buffered
  }
}
