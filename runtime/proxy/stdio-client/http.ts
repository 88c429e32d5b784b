/**
 * The bridge's HTTP client. Sends one request to the server's address (or to another address on its origin). Reads the
 * response as a bounded body, or as JSON-RPC messages from an event stream.
 *
 * Only JSON-RPC messages leave this module, because the client must not receive anything else.
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
import { compressedResponseError, type Dispatcher, type Log, Pieces } from '../../net/index.ts'

/** Maximum size of a message in either direction. */
export const maxMessageBytes: number = 64 * 1024 * 1024
const firstRetryMs = 1_000
const discardMs = 2_000
const shortestRetryMs = 20
export const longestRetryMs = 30_000

export interface HttpOptions {
  readonly dispatcher: Dispatcher
  readonly endpoint: URL
  /** Header lines (name, value, …) sent with every request. */
  readonly headers: readonly string[]
  readonly log: Log
}

export type RawResponse = Dispatcher.ResponseData

/** Position in an event stream, which a later GET needs to resume the stream. */
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

  /** Sends a request. Rejects with BACKEND_UNREACHABLE or the signal's reason. */
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
   * Passes each event to `onEvent` until the stream ends or breaks. Rejects with BACKEND_PROTOCOL for an event that
   * exceeds the limit, or with the signal's reason.
   */
  async readEvents(
    response: RawResponse,
    position: ResumePosition,
    signal: AbortSignal,
    onEvent: (event: SseEvent) => Promise<void>,
  ): Promise<void> {
    rejectCompressed(response)
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
          // Record the id only after the event has been processed, so that an unprocessed event is requested again.
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

  /** Returns the messages in an event or a body, in order. Anything else is logged and skipped. */
  async messagesIn(body: Buffer | Promise<Buffer>): Promise<readonly Message[]> {
    const data = await body
    try {
      // Revision 2025-03-26 allowed several messages in one response.
      const texts = isBatch(data) ? await elementsOf(data.subarray(data.indexOf('['))) : [data]
      const messages: Message[] = []
      for (const text of texts) messages.push(await readServerMessage(text))
      return messages
    } catch (error) {
      this.log.warn('the server sent an invalid message; skipped', { bytes: data.length, err: error })
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

/** Throws BACKEND_PROTOCOL for a success response that is compressed although compression was not requested. */
function rejectCompressed(response: RawResponse): void {
  const failure = response.statusCode < 300 ? compressedResponseError(response.headers) : undefined
  if (!failure) return
  abandon(response)
  throw failure
}

/** Aborts a response that might never end. */
export function abandon({ body }: RawResponse): void {
  // Destroying a body emits an error.
  body.on('error', () => {}).destroy()
}

/** Reads a whole body. Rejects with BACKEND_PROTOCOL if the body exceeds the limit. */
export async function readBody(response: RawResponse, signal: AbortSignal): Promise<Buffer> {
  rejectCompressed(response)
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

/** Discards a body, without waiting for its end. If the body is short, the connection stays usable. */
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
 * Detects an error that the proxy itself returned, which means that the request did not reach the server. The proxy
 * uses JSON-RPC for messages and problem details for other requests.
 */
export function unreachable(status: number, body: Buffer): GatehouseError | undefined {
  const code = status === 502 ? 'BACKEND_UNREACHABLE' : status === 504 ? 'BACKEND_TIMEOUT' : undefined
  if (code === undefined || !body.includes(errors[code].text)) return undefined
  return new GatehouseError(code, { detail: unreachableTexts[code] })
}

const unreachableTexts = {
  BACKEND_UNREACHABLE: 'the server could not be reached',
  BACKEND_TIMEOUT: 'the server did not respond in time (--request-timeout)',
} as const

/** Converts an HTTP status to an error when the body is not JSON-RPC. The body is not shown. */
export function statusError(status: number): GatehouseError {
  const data = { status }
  if (status === 401 || status === 403) {
    const detail = `the server returned HTTP ${status}: sign in with --remote-auth or set --remote-auth-bearer-token-file`
    return new GatehouseError('BACKEND_AUTH_FAILED', { detail, data })
  }
  const detail = `the server returned HTTP ${status}`
  if (status === 429 || status === 503) return new GatehouseError('BACKEND_UNAVAILABLE', { detail, data })
  return new GatehouseError('BACKEND_PROTOCOL', { detail, data })
}
