/**
 * One HTTP request to a backend on a pooled connection: the response as a whole, or as events while they arrive.
 *
 * Redirects are followed only to the same authority and never from https to http, with same method and body. Sizes
 * are bounded. Knows nothing of MCP.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  type Handle,
  inTurns,
  joined,
  largeBytes,
  largeMemberBytes,
  type Message,
  protocolError,
  type ResultSplitter,
  type SseEvent,
  TurnQueue,
} from '../../../mcp/index.ts'
import {
  type AnySignal,
  compressedResponseError,
  type DispatchController,
  type Dispatcher,
  type DispatchHandler,
  Pieces,
  reasonOf,
} from '../../../net/index.ts'
import type { Delivery, ResponseLimit } from '../../model/delivery.ts'
import { type ArrivedPart, ArrivingResult } from './arriving-result.ts'
import { isEventStream, startsAsEvents, startsAsMessage } from './content-type.ts'
import { EventFeed } from './event-feed.ts'

/** Largest answer, and largest single event, of a backend. */
const maxResponseBytes = 64 * 1024 * 1024
const maxRedirects = 3
/** Limits for a discarded body. Beyond them, its connection is closed. */
const maxDiscardBytes = 64 * 1024
const maxDiscardMs = 2_000
/** What a message holds at most beside its result. */
export const envelopeBytes = 4_096

export interface BackendRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
  readonly signal: AnySignal
  /** True: changes nothing, so it is sent once more when the connection was cut before anything was answered. */
  readonly repeatable?: boolean | undefined
  /** Bounds what a successful response may hold before it is cut, and says what to fail with. */
  readonly limit?: ResponseLimit | undefined
  /**
   * Takes a large result apart while it arrives; undefined: it is read whole. Of an event stream it is told the event, and
   * what is not UTF-8 is replaced there.
   */
  readonly splitterFor?: ((event?: Pick<SseEvent, 'id'>) => ResultSplitter | undefined) | undefined
  /** Told when the request leaves. */
  readonly delivery?: Delivery | undefined
  /** Gets a way to end the exchange early while it runs. */
  readonly control?: ExchangeControl
  /** Called for each event of an event-stream answer. */
  readonly onEvent?: Handle<SseEvent>
  readonly onRetry?: (retryMs: number) => void
  /** Called once an event-stream response has begun. */
  readonly onStream?: (headers: IncomingHttpHeaders) => void
  /** When true, a successful response is complete with its head, and its body is discarded. */
  readonly discardsBody?: boolean
  /** Called when the content type of a response does not match its body. The body takes precedence. */
  readonly onMislabelled?: (() => void) | undefined
}

/** Cheaper than another signal: most exchanges are never ended early. */
export interface ExchangeControl {
  /** Set while the exchange runs. */
  exchange?: { fail(error: Error): void } | undefined
}

export interface BackendResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** True when the response was an event stream, which has ended now. */
  readonly stream: boolean
  /** Whole body; empty for a stream, and for a message that was read as it came. */
  readonly body: Buffer
  /** The message, when a part of it has gone on to the client already. */
  readonly message?: Message | undefined
}

/**
 * Sends and waits for the end of the response. Rejects with BACKEND_UNREACHABLE (nothing was answered; `cause` tells
 * why), BACKEND_PROTOCOL (too large, bad redirect, cut short) or the signal's reason.
 */
export async function exchangeWithBackend(
  dispatcher: Dispatcher,
  request: BackendRequest,
): Promise<BackendResponse> {
  const { method, headers, body = null, signal } = request
  let url = request.url
  let hops = 0
  let isRepeated = false
  for (;;) {
    if (signal.aborted) throw reasonOf(signal)
    const handler = new ResponseHandler(request)
    if (request.control) request.control.exchange = handler
    try {
      const path = url.pathname + url.search
      dispatcher.dispatch({ origin: url.origin, path, method, headers, body, headersTimeout: 0 }, handler)
    } catch (cause) {
      handler.fail(new GatehouseError('BACKEND_UNREACHABLE', { cause }))
    }
    try {
      const response = await handler.response
      const next = redirectTarget(response, url)
      if (next === undefined) return response
      if (hops === maxRedirects) throw protocolError('too many redirects')
      hops++
      url = next
      isRepeated = false
    } catch (error) {
      // An idle connection may be closed just as a request leaves on it.
      if (isRepeated || !request.repeatable || signal.aborted || !wasCut(error)) throw error
      isRepeated = true
    }
  }
}

function redirectTarget({ status, headers }: BackendResponse, from: URL): URL | undefined {
  if (status !== 301 && status !== 302 && status !== 307 && status !== 308) return undefined
  const location = headers.location
  if (typeof location !== 'string' || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  return to.origin === from.origin ? to : undefined
}

/** What a connection ends with that its other side, or something between, had closed. */
const cutCodes: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

function wasCut(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'BACKEND_UNREACHABLE' && isCut(error.cause)
}

function isCut(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cutCodes.has(cause.code)
}

class ResponseHandler implements DispatchHandler {
  /** Settles with the end of the response. */
  readonly response: Promise<BackendResponse>
  readonly #request: BackendRequest
  readonly #resolve: (response: BackendResponse) => void
  readonly #reject: (error: Error) => void
  readonly #onAbort = (): void => this.fail(reasonOf(this.#request.signal))
  #controller: DispatchController | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #events: EventFeed | undefined
  readonly #body = new Pieces()
  #size = 0
  #hasData = false
  #arriving: ArrivingResult | undefined
  #parts: TurnQueue<ArrivedPart> | undefined
  /** Timer that runs while a body is discarded. */
  #discarding: NodeJS.Timeout | undefined
  #done = false

  constructor(request: BackendRequest) {
    const { promise, resolve, reject } = Promise.withResolvers<BackendResponse>()
    this.response = promise
    this.#request = request
    this.#resolve = resolve
    this.#reject = reject
    request.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Ends the exchange with an error; what still arrives is dropped. */
  fail(error: Error): void {
    if (!this.#finish()) return
    this.#events?.close()
    this.#parts?.close()
    this.#controller?.abort(error)
    this.#reject(error)
  }

  #finish(): boolean {
    if (this.#done) return false
    this.#done = true
    this.#request.signal.removeEventListener('abort', this.#onAbort)
    return true
  }

  onRequestStart(controller: DispatchController): void {
    this.#controller = controller
    if (this.#request.delivery) this.#request.delivery.sent = true
    if (this.#done) controller.abort(new Error('cancelled'))
  }

  onResponseStart(controller: DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    if (status >= 300) return
    if (this.#request.discardsBody) return this.#discardBody(controller)
    if (Number(headers['content-length']) > this.#maxBytes) return this.fail(this.#tooLarge())
    if (this.#request.onEvent && isEventStream(headers)) this.#beginStream(this.#request.onEvent)
  }

  /** Resolves with the head. The connection is closed when the body is too large or does not end in time. */
  #discardBody(controller: DispatchController): void {
    if (!this.#finish()) return
    const abort = (): void => controller.abort(new Error('the body is discarded'))
    this.#discarding = setTimeout(abort, maxDiscardMs).unref()
    this.#resolve({ status: this.#status, headers: this.#headers, stream: false, body: Buffer.alloc(0) })
  }

  #beginStream(onEvent: Handle<SseEvent>): void {
    const { onRetry, onStream } = this.#request
    this.#events = new EventFeed({
      maxBytes: this.#maxBytes,
      onEvent,
      onRetry,
      splitterFor: this.#request.limit ? undefined : this.#request.splitterFor,
      onError: (cause) => this.fail(this.#events?.overflowed ? this.#tooLarge() : asProtocolError(cause)),
    })
    onStream?.(this.#headers)
  }

  /** Handles the body according to its first bytes when they contradict the content type. */
  #correctType(chunk: Buffer): void {
    const { onEvent, onMislabelled } = this.#request
    if (this.#events) {
      if (!startsAsMessage(chunk)) return
      this.#events.close()
      this.#events = undefined
    } else {
      if (!onEvent || this.#status >= 300 || !startsAsEvents(chunk)) return
      this.#beginStream(onEvent)
    }
    onMislabelled?.()
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (this.#discarding) {
      this.#size += chunk.length
      if (this.#size > maxDiscardBytes) controller.abort(new Error('the body is discarded'))
    }
    if (this.#done) return
    // For an unsuccessful response, the status is sufficient.
    const failure = this.#status < 300 ? compressedResponseError(this.#headers) : undefined
    if (failure) return this.fail(failure)
    if (!this.#hasData) this.#correctType(chunk)
    this.#hasData = true
    if (this.#events) {
      this.#events.push(chunk)
      this.#holdBack(controller)
      return
    }
    const before = this.#size
    this.#size += chunk.length
    if (this.#size > this.#maxBytes) return this.fail(this.#tooLarge())
    if (this.#arriving) this.#arriving.push(chunk)
    else this.#body.add(chunk)
    if (before < largeMemberBytes && this.#size >= largeMemberBytes) this.#beginArriving()
    this.#holdBack(controller)
  }

  /** The response is large: it is taken apart from now on, if it may be. */
  #beginArriving(): void {
    const { limit, splitterFor } = this.#request
    if (this.#status !== 200 || !/^\s*application\/json\b/i.test(String(this.#headers['content-type'])))
      return
    // Of a result that turns out too large nothing may have gone on.
    if (limit && !(Number(this.#headers['content-length']) <= limit.bytes - envelopeBytes)) return
    const splitter = splitterFor?.()
    if (!splitter) return
    const parts = new TurnQueue<ArrivedPart>(
      (part) => part.of.take(part.bytes),
      (cause) => this.fail(asProtocolError(cause)),
    )
    this.#parts = parts
    this.#arriving = new ArrivingResult(splitter, (part) => parts.push(part))
    for (const piece of this.#body.take()) this.#arriving.push(piece)
  }

  /** Set while what has arrived is being read. */
  get #reading(): Promise<void> | undefined {
    return this.#events?.reading ?? this.#parts?.busy
  }

  get #maxBytes(): number {
    const { limit } = this.#request
    return limit && this.#status < 300 ? Math.min(limit.bytes, maxResponseBytes) : maxResponseBytes
  }

  #tooLarge(): GatehouseError {
    const cause = new Error('the response is larger than allowed')
    return this.#request.limit?.error() ?? new GatehouseError('BACKEND_PROTOCOL', { cause })
  }

  /** Nothing more is taken from the backend while what it has sent is being read, or the client takes no more of it. */
  #holdBack(controller: DispatchController): void {
    const reading = this.#reading
    if (!reading || controller.paused) return
    controller.pause()
    void reading.then(() => controller.resume())
  }

  onResponseEnd(): void {
    clearTimeout(this.#discarding)
    this.#afterEvents(() => void this.#complete())
  }

  onResponseError(_controller: DispatchController, cause: Error): void {
    clearTimeout(this.#discarding)
    this.#afterEvents(() => {
      if (this.#finish()) this.#reject(connectionError(cause, this.#status !== 0))
    })
  }

  /** What has arrived counts before the end does. */
  #afterEvents(work: () => void): void {
    const reading = this.#reading
    if (reading) void reading.then(() => this.#afterEvents(work))
    else work()
  }

  async #complete(): Promise<void> {
    if (this.#done) return
    let message: Message | undefined
    try {
      message = this.#arriving?.end()
    } catch (cause) {
      this.fail(asProtocolError(cause))
      return
    }
    const pieces = this.#arriving?.held ?? this.#body
    const body = pieces.size < largeBytes ? pieces.whole() : await inTurns(joined(pieces.take(), pieces.size))
    if (!this.#finish()) return
    const stream = this.#events !== undefined
    this.#resolve({ status: this.#status, headers: this.#headers, stream, body, message })
  }
}

/** `began`: a part of the response is there already. */
function connectionError(cause: Error, began: boolean): GatehouseError {
  if (began)
    return new GatehouseError('BACKEND_PROTOCOL', {
      detail: 'the response of the backend was cut short',
      cause,
    })
  return isCut(cause)
    ? new GatehouseError('BACKEND_UNREACHABLE', {
        detail: 'the backend closed the connection before it answered',
        cause,
      })
    : new GatehouseError('BACKEND_UNREACHABLE', { cause })
}

/** Whatever is wrong with what a backend sends is an error of the backend, not of the client's request. */
function asProtocolError(cause: unknown): GatehouseError {
  const ours = cause instanceof GatehouseError && cause.code.startsWith('BACKEND_')
  return ours ? cause : new GatehouseError('BACKEND_PROTOCOL', { cause })
}
