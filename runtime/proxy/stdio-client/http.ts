/**
 * HTTP as the bridge needs it: one request to the server's address (or another one on its origin), and its response read
 * as a bounded body or as JSON-RPC messages of an event stream.
 *
 * What is not a JSON-RPC message never gets past here: the client's end must see messages and nothing else.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { errors, GatehouseError } from '../../../schemas/index.ts'
import {
  eventStreamType,
  inTurns,
  isBatch,
  joined,
  jsonType,
  largeBytes,
  lastEventIdHeader,
  type Message,
  readServerMessage,
  type SseEvent,
  nextShare,
  shareIsOver,
  sseReader,
  visitElementsInTurns,
} from '../../mcp/index.ts'
import { codedAnswer, type Dispatcher, type Log, Pieces } from '../../net/index.ts'

/** Largest message in either direction. */
export const maxMessageBytes: number = 64 * 1024 * 1024
const firstRetryMs = 1_000
const discardMs = 2_000
const shortestRetryMs = 20
export const longestRetryMs = 30_000

export interface HttpOptions {
  readonly dispatcher: Dispatcher
  readonly endpoint: URL
  /** Header lines (name, value, …) of every request. */
  readonly headers: readonly string[]
  readonly log: Log
}

export type RawResponse = Dispatcher.ResponseData

/** Where an event stream stands: what a later GET needs to take it up again. */
export interface ResumePosition {
  lastEventId: string | undefined
  retryMs: number
}

export function newPosition(): ResumePosition {
  return { lastEventId: undefined, retryMs: firstRetryMs }
}

export class Http {
  readonly endpoint: URL
  readonly log: Log
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
    this.endpoint = options.endpoint
    this.log = options.log
  }

  /** Rejects with BACKEND_UNREACHABLE or the signal's reason. */
  async request(
    method: 'GET' | 'POST' | 'DELETE',
    options: {
      readonly url?: URL
      readonly headers: readonly string[]
      readonly body?: Buffer
      readonly signal: AbortSignal
    },
  ): Promise<RawResponse> {
    const { dispatcher, headers } = this.#options
    const { url = this.endpoint, body, signal } = options
    const accept = method === 'GET' ? eventStreamType : `${jsonType}, ${eventStreamType}`
    const lines = ['Host', url.host, 'Accept', accept, 'Accept-Encoding', 'identity', ...headers]
    lines.push(...options.headers)
    if (body) lines.push('Content-Type', jsonType)
    try {
      return await dispatcher.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: lines,
        body: body ?? null,
        signal,
      })
    } catch (cause) {
      signal.throwIfAborted()
      throw new GatehouseError('BACKEND_UNREACHABLE', { cause })
    }
  }

  /**
   * Hands over each event until the stream ends; a stream that breaks counts as ended. Rejects with BACKEND_PROTOCOL for
   * an event beyond the bound, or the signal's reason.
   */
  async readEvents(
    response: RawResponse,
    position: ResumePosition,
    signal: AbortSignal,
    onEvent: (event: SseEvent) => Promise<void>,
  ): Promise<void> {
    refuseCoded(response)
    const queue: SseEvent[] = []
    const reader = sseReader(
      maxMessageBytes,
      (event) => queue.push(event),
      (retryMs) => {
        position.retryMs = Math.min(Math.max(retryMs, shortestRetryMs), longestRetryMs)
      },
    )
    try {
      for await (const chunk of response.body) {
        if (shareIsOver()) await nextShare()
        reader.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)))
        for (const event of queue.splice(0)) {
          if (shareIsOver()) await nextShare()
          await onEvent(event)
          // Noted only now: what was not handed over is asked for again.
          if (event.id !== undefined && event.id !== '') position.lastEventId = lastEventIdHeader(event.id)
        }
      }
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof GatehouseError) throw cause
      if (cause instanceof RangeError) throw new GatehouseError('BACKEND_PROTOCOL', { cause })
      this.log.debug('a stream broke off', { err: cause })
    }
  }

  /** The messages in an event or a body, in order; what is no message is logged and left out. */
  async messagesIn(body: Buffer | Promise<Buffer>): Promise<readonly Message[]> {
    const data = await body
    try {
      // Revision 2025-03-26 allowed several messages in one response.
      const texts = isBatch(data) ? await elementsOf(data.subarray(data.indexOf('['))) : [data]
      const messages: Message[] = []
      for (const text of texts) messages.push(await readServerMessage(text))
      return messages
    } catch (error) {
      this.log.warn('the server sent what is no message', { bytes: data.length, err: error })
      return []
    }
  }
}

async function elementsOf(list: Buffer): Promise<readonly Buffer[]> {
  const elements: Buffer[] = []
  const note = (from: number, to: number): undefined => void elements.push(list.subarray(from, to))
  await inTurns(visitElementsInTurns(list, note))
  return elements
}

/** Throws BACKEND_PROTOCOL for what is compressed although that was not asked for; of a refusal the status says enough. */
function refuseCoded(response: RawResponse): void {
  const failure = response.statusCode < 300 ? codedAnswer(response.headers) : undefined
  if (!failure) return
  abandon(response)
  throw failure
}

/** Breaks off a response that may have no end. */
export function abandon({ body }: RawResponse): void {
  // A body that is destroyed reports that as an error.
  body.on('error', () => {}).destroy()
}

/** The whole body. Rejects with BACKEND_PROTOCOL beyond the bound. */
export async function readBody(response: RawResponse, signal: AbortSignal): Promise<Buffer> {
  refuseCoded(response)
  const pieces = new Pieces()
  try {
    for await (const chunk of response.body) {
      pieces.add(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)))
      if (pieces.size > maxMessageBytes) {
        throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the response is larger than allowed' })
      }
    }
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof GatehouseError) throw cause
    throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the response was cut short', cause })
  }
  return pieces.size < largeBytes ? pieces.whole() : inTurns(joined(pieces.take(), pieces.size))
}

/** Discards a body without waiting for its end. After a short body, the connection stays usable. */
export function drop({ body }: RawResponse): void {
  const timer = setTimeout(() => body.destroy(), discardMs).unref()
  body.on('error', () => {})
  body
    .dump({ limit: 65_536 })
    .catch(() => undefined)
    .finally(() => clearTimeout(timer))
}

export function isEventStream({ headers }: { readonly headers: IncomingHttpHeaders }): boolean {
  return /^\s*text\/event-stream\b/i.test(headers['content-type'] ?? '')
}

/**
 * An error that the proxy in front found itself: nobody answered there. The proxy words it as JSON-RPC for messages and as
 * problem details for the rest.
 */
export function unreachable(status: number, body: Buffer): GatehouseError | undefined {
  const code = status === 502 ? 'BACKEND_UNREACHABLE' : status === 504 ? 'BACKEND_TIMEOUT' : undefined
  if (code === undefined || !body.includes(errors[code].text)) return undefined
  return new GatehouseError(code, { detail: unreachableTexts[code] })
}

const unreachableTexts = {
  BACKEND_UNREACHABLE: 'the server could not be reached',
  BACKEND_TIMEOUT: 'the server did not answer in time (--request-timeout)',
} as const

/** What an HTTP status means when the body says nothing in JSON-RPC. The body itself is not shown. */
export function statusError(status: number): GatehouseError {
  const data = { status }
  if (status === 401 || status === 403) {
    const detail = `the server answered HTTP ${status}: sign in with --remote-auth, or give --remote-auth-bearer-token-file`
    return new GatehouseError('BACKEND_AUTH_FAILED', { detail, data })
  }
  const detail = `the server answered HTTP ${status}`
  if (status === 429 || status === 503) return new GatehouseError('BACKEND_UNAVAILABLE', { detail, data })
  return new GatehouseError('BACKEND_PROTOCOL', { detail, data })
}
