/**
 * Relays one response from the target to the client in chunks; implements undici's dispatch handler.
 *
 * A committed response is sent to the client: the head, the body with back-pressure, and trailers. A response that is
 * set aside (redirect, lost session, rejected credential) is passed to the forwarder, which drops its body. Nothing is
 * buffered beyond the two sockets, except for the short body of a rejection whose text must be read. When the target
 * aborts a response, the client's response is aborted too, never completed.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import { maxRefusalBytes } from '../../mcp/index.ts'
import {
  type DispatchController,
  type DispatchHandler,
  registerCallerStream,
  registerStream,
} from '../../net/index.ts'
import { addTrailers, clientGone, sendHead, waitForDrain } from './client-side.ts'
import { type EndpointRewriter, makeEndpointRewriter } from './endpoint-event.ts'
import type { ProxyExchange } from '../model/exchange.ts'
import { firstValue, type ResponseRules, responseHeaders } from './response-headers.ts'
import { acceptUpgrade } from './upgrade.ts'

/** How to handle a response: send it to the client, withhold it, or read its body before deciding. */
export type RelayDecision = 'show' | 'aside' | 'read'

/** The forwarder's decisions about a response. */
export interface ResponsePolicy {
  /**
   * Called when the head of a final response has arrived, before anything is written. Called again with the body after
   * a 'read' decision; a second 'read' is treated as 'show'.
   */
  decide(status: number, headers: IncomingHttpHeaders, body?: Buffer): RelayDecision
  readonly rules: ResponseRules
  /** Receives a response's bytes before the client does. */
  readonly watchEvents?: ((chunk: Buffer) => void) | undefined
  /** The target's origin. Absolute URLs of this origin in `endpoint` events are reduced to a path. */
  readonly targetOrigin: string
  /** Prefix for the path of an `endpoint` event. */
  readonly endpointPrefix: string
}

/** A response whose body is read before anything is written to the client. */
interface Held {
  readonly status: number
  readonly text: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly chunks: Buffer[]
  size: number
}

/** Head of a response that was set aside. Undefined when the client got a response or disconnected. */
export type DiscardedResponse = { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined

/**
 * A dropped body of up to this size is read, which keeps the connection usable. A larger body closes the connection.
 */
const maxDropped = 65_536

const discarded = new Error('the response was discarded')

export class ResponseRelay implements DispatchHandler {
  readonly #exchange: ProxyExchange
  readonly #policy: ResponsePolicy
  readonly #resolve: (aside: DiscardedResponse) => void
  readonly #reject: (error: GatehouseError) => void
  readonly #onClose = (): void => {
    if (this.#state !== 'done') this.#controller?.abort(clientGone)
  }
  #controller: DispatchController | undefined
  #state: 'waiting' | 'reading' | 'committed' | 'aside' | 'done' = 'waiting'
  #held: Held | undefined
  #dropped = 0
  /** Length of the body; undefined when the target did not declare it. */
  #length: number | undefined
  /** True when the client has received the whole body before the target's response ends. */
  #ended = false
  #rewriter: EndpointRewriter | undefined

  constructor(
    exchange: ProxyExchange,
    policy: ResponsePolicy,
    resolve: (aside: DiscardedResponse) => void,
    reject: (error: GatehouseError) => void,
  ) {
    this.#exchange = exchange
    this.#policy = policy
    this.#resolve = resolve
    this.#reject = reject
    exchange.res.once('close', this.#onClose)
  }

  onRequestStart(controller: DispatchController): void {
    this.#controller = controller
    if (this.#exchange.res.destroyed) controller.abort(clientGone)
  }

  onRequestUpgrade(
    _controller: DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    this.#finish()
    acceptUpgrade(this.#exchange, status, headers, socket)
    this.#resolve(undefined)
  }

  onResponseStart(
    controller: DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    text?: string,
  ): void {
    // Interim responses, such as 103, concern only the connection to the target.
    if (status < 200) return
    const decision = this.#policy.decide(status, headers)
    if (decision === 'aside') {
      this.#discard(status, headers)
      if (Number(headers['content-length'] ?? Infinity) > maxDropped) controller.abort(discarded)
    } else if (decision === 'read' && Number(headers['content-length'] ?? 0) <= maxRefusalBytes) {
      this.#state = 'reading'
      this.#held = { status, text, headers, chunks: [], size: 0 }
    } else this.#commit(status, text, headers)
  }

  #discard(status: number, headers: IncomingHttpHeaders): void {
    this.#state = 'aside'
    this.#exchange.res.off('close', this.#onClose)
    this.#resolve({ status, headers })
  }

  /** Sends a withheld response to the client. */
  #release({ status, text, headers, chunks }: Held): void {
    this.#held = undefined
    try {
      this.#commit(status, text, headers)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error('the head cannot be sent'))
      this.#controller?.abort(discarded)
      return
    }
    for (const chunk of chunks) this.#pass(chunk)
  }

  /** Decides again after the whole body has been read. */
  #check(held: Held): void {
    const { status, headers } = held
    if (this.#policy.decide(status, headers, Buffer.concat(held.chunks)) === 'aside') {
      this.#discard(status, headers)
    } else this.#release(held)
  }

  #commit(status: number, text: string | undefined, headers: IncomingHttpHeaders): void {
    const { req, res } = this.#exchange
    const lines = responseHeaders(headers, res, this.#policy.rules)
    sendHead(res, status, text, lines)
    this.#state = 'committed'
    if (headers['content-length'] !== undefined) {
      this.#length = Number(headers['content-length'])
      return
    }
    // Send the head of a stream without waiting for its first byte. Waiting one tick lets the head and the first byte
    // share a packet.
    process.nextTick(flushHead, res)
    if (firstValue(headers['content-type'])?.startsWith('text/event-stream') !== true) return
    this.#exchange.streamed = true
    // The stream may stay open for days, so release its raw headers (1.5 KB per stream).
    if (this.#controller) this.#controller.rawHeaders = null
    if (isEndless(this.#exchange)) registerCallerStream(this.#exchange, () => this.#endStream())
    else registerStream(res, () => this.#endStream())
    // Only clients of the deprecated HTTP+SSE transport wait for an endpoint. Newer clients have a session or use POST.
    if (req.method === 'GET' && !req.headers['mcp-session-id'] && !headers['content-encoding']) {
      this.#rewriter = makeEndpointRewriter(this.#policy.targetOrigin, this.#policy.endpointPrefix)
    }
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (this.#state === 'aside') {
      this.#dropped += chunk.length
      if (this.#dropped > maxDropped) controller.abort(discarded)
      return
    }
    if (this.#held) {
      this.#held.chunks.push(chunk)
      this.#held.size += chunk.length
      if (this.#held.size > maxRefusalBytes) this.#release(this.#held)
      return
    }
    if (!this.#pass(chunk)) waitForDrain(this.#exchange.res, controller)
  }

  /** Returns false when the client must read the buffered data before the next chunk. */
  #pass(chunk: Buffer): boolean {
    this.#policy.watchEvents?.(chunk)
    if (chunk.length === this.#length) {
      // Most responses arrive in one piece; head and body are then sent together.
      this.#ended = true
      this.#exchange.res.end(chunk)
      return true
    }
    const bytes = this.#rewriter ? this.#rewriter.push(chunk) : chunk
    return bytes.length === 0 || this.#exchange.res.write(bytes)
  }

  onResponseEnd(_controller: DispatchController, trailers: IncomingHttpHeaders): void {
    if (this.#held) this.#check(this.#held)
    if (this.#state !== 'committed') return
    const { res } = this.#exchange
    const rest = this.#rewriter?.end()
    if (rest && rest.length > 0) res.write(rest)
    addTrailers(res, trailers)
    this.#finish()
    if (!this.#ended) res.end()
    this.#resolve(undefined)
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    this.#fail(error)
  }

  #fail(error: Error): void {
    const state = this.#state
    if (state === 'aside' || state === 'done') return
    this.#finish()
    if (error === clientGone) this.#resolve(undefined)
    else if (state === 'committed' || this.#exchange.res.headersSent) {
      this.#exchange.res.destroy()
      this.#resolve(undefined)
    } else this.#reject(toError(error))
  }

  /**
   * Ends the stream when the listener closes. The client sees a complete but short stream and may reconnect elsewhere.
   */
  #endStream(): void {
    if (this.#state !== 'committed') return
    this.#finish()
    this.#exchange.res.end()
    this.#resolve(undefined)
    this.#controller?.abort(clientGone)
  }

  #finish(): void {
    this.#state = 'done'
  }
}

const listen = 'subscriptions/listen'

/**
 * True for a stream that does not end with a response. A call's stream may outlive the token, so that the call can
 * finish.
 */
function isEndless(exchange: ProxyExchange): boolean {
  if (exchange.req.method !== 'POST') return true
  return exchange.body.includes(listen) && exchange.message?.method === listen
}

function flushHead(res: ProxyExchange['res']): void {
  if (!res.destroyed && !res.writableEnded) res.flushHeaders()
}

/** Converts an error for the client. undici's own message is only logged, as the cause. */
function toError(error: Error): GatehouseError {
  const code: unknown = 'code' in error ? error.code : undefined
  if (code === 'UND_ERR_HEADERS_TIMEOUT') return new GatehouseError('BACKEND_TIMEOUT', { cause: error })
  if (code === 'UND_ERR_INVALID_ARG') return new GatehouseError('BAD_REQUEST', { cause: error })
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_HTTP_INVALID_STATUS_CODE') {
    return new GatehouseError('BACKEND_PROTOCOL', { cause: error })
  }
  return new GatehouseError('BACKEND_UNREACHABLE', { cause: error })
}
