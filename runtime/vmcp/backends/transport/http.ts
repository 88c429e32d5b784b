/**
 * Sends one HTTP request to a backend on a pooled connection. Returns the whole response, or reports events as they
 * arrive.
 *
 * Redirects are followed only to the same authority and never from https to http. A redirect does not change the method
 * or the body. Sizes are bounded. This module is independent of MCP.
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
import type { TokenProof } from '../../../oauth/index.ts'
import type { Delivery, ResponseLimit } from '../../model/delivery.ts'
import { type ArrivedPart, ArrivingResult } from './arriving-result.ts'
import { isEventStream, startsAsEvents, startsAsMessage } from './content-type.ts'
import { EventFeed } from './event-feed.ts'

/** Maximum size of a backend's response, and of a single event in a stream. */
const maxResponseBytes = 64 * 1024 * 1024
const maxRedirects = 3
/** Limits for a discarded body. Beyond these limits, the connection is closed. */
const maxDiscardBytes = 64 * 1024
const maxDiscardMs = 2_000
/** Maximum size of a message, excluding its result. */
export const envelopeBytes = 4_096

export interface BackendRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Signs a proof for each attempt, if the credential in the headers is bound to a key. */
  readonly proof?: TokenProof | undefined
  readonly body?: Buffer | undefined
  readonly signal: AnySignal
  /**
   * True if the request has no side effects. Such a request is repeated once if the connection closes before a
   * response.
   */
  readonly repeatable?: boolean | undefined
  /** Size limit for a successful response, and the error for a response that exceeds the limit. */
  readonly limit?: ResponseLimit | undefined
  /**
   * Returns the splitter for a large result. If this function returns undefined, the result is read whole. Receives the
   * event if the response is an event stream. Invalid UTF-8 is replaced.
   */
  readonly splitterFor?: ((event?: Pick<SseEvent, 'id'>) => ResultSplitter | undefined) | undefined
  /** Records the time at which the request is sent. */
  readonly delivery?: Delivery | undefined
  /** Receives the running exchange, which the caller can end early. */
  readonly control?: ExchangeControl
  /** Called for each event of an event-stream response. */
  readonly onEvent?: Handle<SseEvent>
  readonly onRetry?: (retryMs: number) => void
  /** Called once an event-stream response has begun. */
  readonly onStream?: (headers: IncomingHttpHeaders) => void
  /** If true, a successful response is complete once its head has arrived. The body is then discarded. */
  readonly discardsBody?: boolean
  /** If true, a redirect is returned instead of followed. */
  readonly refusesRedirects?: boolean
  /** Number of bytes of an unsuccessful response to read. The rest is discarded. Default: the whole response. */
  readonly maxErrorBytes?: number
  /** Called if a response's content type does not match its body. The body takes precedence. */
  readonly onMislabelled?: (() => void) | undefined
}

/** Ends an exchange early. A separate signal would be more expensive, and most exchanges are never ended early. */
export interface ExchangeControl {
  /** The running exchange. Undefined while no exchange is running. */
  exchange?: { fail(error: Error): void } | undefined
}

export interface BackendResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** True if the response was an event stream. */
  readonly stream: boolean
  /** The whole body. Empty for an event stream or for a message that was streamed to the client. */
  readonly body: Buffer
  /** The message, if part of it was streamed to the client. */
  readonly message?: Message | undefined
}

/**
 * Sends a request and waits for the end of the response. Rejects with BACKEND_UNREACHABLE if no response arrives. In
 * that case, `cause` contains the reason. Rejects with BACKEND_PROTOCOL if the response is too large or cut short, or
 * after too many redirects. Rejects with the signal's reason if the signal aborts.
 */
export async function exchangeWithBackend(
  dispatcher: Dispatcher,
  request: BackendRequest,
): Promise<BackendResponse> {
  const { method, proof, body = null, signal, control } = request
  let { url, repeatable = false } = request
  let hasRenewedProof = false
  let hops = 0
  for (;;) {
    if (signal.aborted) throw reasonOf(signal)
    const headers = proof ? { ...request.headers, dpop: proof.sign(method, url) } : request.headers
    const handler = new ResponseHandler(request)
    if (control) control.exchange = handler
    const path = url.pathname + url.search
    try {
      dispatcher.dispatch({ origin: url.origin, path, method, headers, body, headersTimeout: 0 }, handler)
    } catch (cause) {
      handler.fail(new GatehouseError('BACKEND_UNREACHABLE', { cause }))
    }
    let response: BackendResponse
    try {
      response = await handler.response
    } catch (error) {
      // The backend may close an idle connection just as Gatehouse sends a request on it.
      if (!repeatable || signal.aborted || !wasCut(error)) throw error
      repeatable = false
      continue
    }
    // The backend requires another nonce in the proof. The backend has not executed the request.
    if (proof?.note(url, response.status, response.headers) && !hasRenewedProof) {
      hasRenewedProof = true
      continue
    }
    const next = request.refusesRedirects ? undefined : redirectTarget(response, url)
    if (next === undefined) return response
    if (hops++ === maxRedirects) throw protocolError('too many redirects')
    url = next
  }
}

function redirectTarget({ status, headers }: BackendResponse, from: URL): URL | undefined {
  if (status !== 301 && status !== 302 && status !== 307 && status !== 308) return undefined
  const location = headers.location
  if (typeof location !== 'string' || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  return to.origin === from.origin ? to : undefined
}

/** Error codes for a connection that the backend or an intermediary has closed. */
const closedConnectionCodes: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

function wasCut(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'BACKEND_UNREACHABLE' && isCut(error.cause)
}

function isCut(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && closedConnectionCodes.has(cause.code)
}

class ResponseHandler implements DispatchHandler {
  /** Settles when the response ends. */
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
  /** Timer that runs while a response body is being discarded. */
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

  /** Ends the exchange with an error. Data that arrives later is dropped. */
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

  /** Resolves when the head has arrived. The connection is closed if the body is too large or does not end in time. */
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
      onError: (cause) => this.fail(this.#events?.hasOverflowed ? this.#tooLarge() : asProtocolError(cause)),
    })
    onStream?.(this.#headers)
  }

  /** Determines the format from the body's first bytes if they contradict the content type. */
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
    // For an unsuccessful response, the status alone is sufficient.
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
    if (this.#status >= 300 && this.#size > (this.#request.maxErrorBytes ?? Infinity))
      return this.#endEarly(controller)
    if (before < largeMemberBytes && this.#size >= largeMemberBytes) this.#beginArriving()
    this.#holdBack(controller)
  }

  /** Resolves with the part of an unsuccessful response that has arrived, and closes the connection. */
  #endEarly(controller: DispatchController): void {
    if (!this.#finish()) return
    this.#resolve({ status: this.#status, headers: this.#headers, stream: false, body: this.#body.whole() })
    controller.abort(new Error('the rest of the body is discarded'))
  }

  /** Streams the rest of a large response to the client if the limit permits this. */
  #beginArriving(): void {
    const { limit, splitterFor } = this.#request
    if (this.#status !== 200 || !/^\s*application\/json\b/i.test(String(this.#headers['content-type'])))
      return
    // If a result could still exceed the limit, no part of it may be streamed.
    if (limit && !(Number(this.#headers['content-length']) <= limit.bytes - envelopeBytes)) return
    const splitter = splitterFor?.()
    if (!splitter) return
    const parts = new TurnQueue<ArrivedPart>(
      (part) => part.result.take(part.bytes),
      (cause) => this.fail(asProtocolError(cause)),
    )
    this.#parts = parts
    this.#arriving = new ArrivingResult(splitter, (part) => parts.push(part))
    for (const piece of this.#body.take()) this.#arriving.push(piece)
  }

  /** Settles when the data that has arrived has been read. Undefined if no data is pending. */
  get #reading(): Promise<void> | undefined {
    return this.#events?.pending ?? this.#parts?.busy
  }

  get #maxBytes(): number {
    const { limit } = this.#request
    return limit && this.#status < 300 ? Math.min(limit.bytes, maxResponseBytes) : maxResponseBytes
  }

  #tooLarge(): GatehouseError {
    const cause = new Error('the response is larger than allowed')
    return this.#request.limit?.error() ?? new GatehouseError('BACKEND_PROTOCOL', { cause })
  }

  /** Pauses the backend while received data is pending, for example because the client is not reading. */
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

  /** Runs `work` after the data that has arrived has been handled. */
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
    const pieces = this.#arriving?.buffered ?? this.#body
    const body = pieces.size < largeBytes ? pieces.whole() : await inTurns(joined(pieces.take(), pieces.size))
    if (!this.#finish()) return
    const stream = this.#events !== undefined
    this.#resolve({ status: this.#status, headers: this.#headers, stream, body, message })
  }
}

/** `began` is true if part of the response has arrived. */
function connectionError(cause: Error, began: boolean): GatehouseError {
  if (began)
    return new GatehouseError('BACKEND_PROTOCOL', {
      detail: "the backend's response was cut short",
      cause,
    })
  return isCut(cause)
    ? new GatehouseError('BACKEND_UNREACHABLE', {
        detail: 'the backend closed the connection before it responded',
        cause,
      })
    : new GatehouseError('BACKEND_UNREACHABLE', { cause })
}

/** Converts an error in the data from a backend to a BACKEND_* error, because the client's request is not the cause. */
function asProtocolError(cause: unknown): GatehouseError {
  const ours = cause instanceof GatehouseError && cause.code.startsWith('BACKEND_')
  return ours ? cause : new GatehouseError('BACKEND_PROTOCOL', { cause })
}
