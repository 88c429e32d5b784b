/**
 * Streams a large result to the client as it arrives from the backend. The result is sent as JSON or as the last event
 * of a stream.
 *
 * Waits for a client that reads slowly, and disconnects a client that does not read. A caller that cannot call `end`
 * must destroy the response. The client then detects the incomplete result.
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

/** Maximum number of unsent bytes before reading from the backend pauses. */
const maxWaitingBytes = 256 * 1024

export interface ClientResultStreamOptions {
  readonly res: ServerResponse
  /** Raw JSON of the request id. */
  readonly id: string
  readonly era: Era
  /** Response headers, used if the head has not been sent yet. */
  readonly headers: Readonly<Record<string, string>>
  /** Reserves the response for the streamed result. Returns false if the response can no longer be streamed. */
  readonly claim: (stream: ClientResultStream) => boolean
}

export class ClientResultStream implements ResultPassage {
  readonly era: Era
  readonly #options: ClientResultStreamOptions
  #asEvent = false
  /** The beginning of the response, which is sent with the first part. */
  #head: Buffer | undefined

  constructor(options: ClientResultStreamOptions) {
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

  /** True once part of the response has been sent. Until then, an error can be sent instead of the result. */
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

  /** Completes the result with the members of `rest` that were not streamed, and ends the response. */
  end(rest: Buffer, passed: readonly string[]): void {
    const { res } = this.#options
    this.#sendHead()
    const tail = Buffer.concat([...otherMembers(rest, passed), messageEnd])
    res.end(this.#asEvent ? Buffer.concat([onOneLine(tail), eventEnd]) : tail)
    if (!res.writableFinished) res.setTimeout(stuckMs)
  }
}

const messageEnd = Buffer.from('}}')
