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

  constructor(options: PassageOptions) {
    this.#options = options
    this.era = options.era
  }

  begin(): boolean {
    const { res, id, headers, claim } = this.#options
    if (!claim(this)) return false
    this.#asEvent = res.headersSent
    res.on('timeout', () => res.destroy())
    const head = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{`)
    if (this.#asEvent) res.write(Buffer.concat([messageHead, head]))
    else {
      res.writeHead(200, { 'content-type': 'application/json', ...headers })
      res.write(head)
    }
    return true
  }

  write(parts: readonly Buffer[]): Promise<void> | undefined {
    const { res } = this.#options
    if (res.destroyed) return undefined
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
    const tail = Buffer.concat([...otherMembers(rest, passed), messageEnd])
    res.end(this.#asEvent ? Buffer.concat([onOneLine(tail), eventEnd]) : tail)
    if (!res.writableFinished) res.setTimeout(stuckMs)
  }
}

const messageEnd = Buffer.from('}}')
