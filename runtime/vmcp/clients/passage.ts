/**
 * The way of a large result to its client while it arrives from the backend: as JSON, or as the last event of a stream.
 *
 * Waits for a client that reads slowly, and cuts off one that reads nothing. Whoever does not reach `end` destroys the response:
 * a client must see that the result is not complete.
 */
import type { ServerResponse } from 'node:http'
import {
  type Era,
  eventEnd,
  messageHead,
  onOneLine,
  otherMembers,
  type ResultPassage,
} from '../../mcp/index.ts'
import { stuckMs } from './stream.ts'

/** What may wait for the client before the backend has to. */
const maxWaitingBytes = 256 * 1024

export interface PassageOptions {
  readonly res: ServerResponse
  /** Raw JSON of the request's id. */
  readonly id: string
  readonly era: Era
  /** Of the response, in so far as it is none yet. */
  readonly headers: Readonly<Record<string, string>>
  /** False when the response cannot be given in parts any more. */
  readonly claim: (passage: Passage) => boolean
}

export class Passage implements ResultPassage {
  readonly era: Era
  readonly #options: PassageOptions
  #asEvent = false
  /** The beginning of the response, until it is sent with the first part. */
  #head: Buffer | undefined

  constructor(options: PassageOptions) {
    this.#options = options
    this.era = options.era
  }

  begin(): boolean {
    const { res, id, claim } = this.#options
    if (!claim(this)) return false
    this.#asEvent = res.headersSent
    this.#head = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{`)
    return true
  }

  /** True once a part of the response was sent. Until then, an error can be sent instead. */
  get hasSent(): boolean {
    return this.#head === undefined
  }

  #sendHead(): void {
    const { res, headers } = this.#options
    if (!this.#head) return
    res.on('timeout', () => res.destroy())
    if (!this.#asEvent) res.writeHead(200, { 'content-type': 'application/json', ...headers })
    res.write(this.#asEvent ? Buffer.concat([messageHead, this.#head]) : this.#head)
    this.#head = undefined
  }

  write(parts: readonly Buffer[]): Promise<void> | undefined {
    const { res } = this.#options
    if (res.destroyed) return undefined
    this.#sendHead()
    const [first] = parts
    const bytes = first && parts.length === 1 ? first : Buffer.concat(parts)
    if (res.write(this.#asEvent ? onOneLine(bytes) : bytes) || res.writableLength <= maxWaitingBytes)
      return undefined
    return this.#drained()
  }

  #drained(): Promise<void> {
    const { res } = this.#options
    res.setTimeout(stuckMs)
    return new Promise((resolve) => {
      const done = (): void => {
        res.off('drain', done)
        res.off('close', done)
        res.setTimeout(0)
        resolve()
      }
      res.on('drain', done)
      res.on('close', done)
    })
  }

  /** Completes the result with all of `rest` but what was passed, and ends the response. */
  end(rest: Buffer, passed: readonly string[]): void {
    const { res } = this.#options
    this.#sendHead()
    const tail = Buffer.concat([...otherMembers(rest, passed), messageEnd])
    res.end(this.#asEvent ? Buffer.concat([onOneLine(tail), eventEnd]) : tail)
    if (!res.writableFinished) res.setTimeout(stuckMs)
  }
}

const messageEnd = Buffer.from('}}')
