/**
 * Implements the session era over streamable HTTP. Each message is a POST, and responses are JSON or event streams.
 * Messages that do not belong to a request arrive on a GET stream.
 *
 * A stream that ends before its response is resumed with `Last-Event-ID` if the backend sends event ids.
 * Source: MCP 2025-11-25, transports.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  headerName,
  JsonObject,
  lastEventIdHeader,
  mayResend,
  type Message,
  protocolError,
  type SessionRefusal,
  sessionRefusal,
  type SseEvent,
  rpcCode,
} from '../../../mcp/index.ts'
import {
  type AnySignal,
  clampRetry,
  defaultRetryMs,
  InFlight,
  pause,
  retryAfterOf,
  signalOf,
  StreamPace,
} from '../../../net/index.ts'
import type { BackendSession } from '../../model/session.ts'
import {
  type BackendChannel,
  type ChannelEvents,
  ConnectionClosed,
  type SendOptions,
  BackendSessionLost,
  WrongEra,
} from './channel.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import type { BackendResponse, ExchangeControl } from '../transport/http.ts'
import {
  forwardMessageIn,
  readBackendMessage,
  receiveEvent,
  streamReports,
} from '../transport/read-message.ts'
import {
  describeRequest,
  type AuthorizedRequest,
  isOwnRequest,
  isRepeatable,
  sendToBackend,
  unreadableResponse,
} from '../transport/send.ts'
import { errorOf, isDecisiveStatus, isTemporary } from '../transport/status-error.ts'
import { GapReporter } from './gap-reporter.ts'

const acceptHeader = 'application/json, text/event-stream'
/** Time in milliseconds for which a stream may stay open after its response has arrived. */
const lingerMs = 2_000

/** A position in an event stream from which a later GET can resume the stream. */
interface StreamPosition {
  lastEventId: string | undefined
  retryMs: number
}

/** A message in flight and the state of its response. */
interface Sending {
  readonly options: SendOptions
  readonly position: StreamPosition
  readonly control: ExchangeControl
  isStream: boolean
  /** True until the response to a request has arrived. */
  awaitsResponse: boolean
  /** Timer that ends a stream if the stream stays open after the response. */
  timer: NodeJS.Timeout | undefined
}

export class StreamableChannel implements BackendChannel {
  readonly #target: ChannelTarget
  readonly #events: ChannelEvents
  readonly #closed = new AbortController()
  readonly #retired = new AbortController()
  readonly #inFlight = new InFlight<ExchangeControl>()
  readonly #gaps: GapReporter
  /** The headers with the session id and the protocol revision, once they are known. */
  readonly #sessionHeaders: Record<string, string> = {}
  #sessionId: string | undefined

  constructor(target: ChannelTarget, events: ChannelEvents, resume?: BackendSession) {
    this.#target = target
    this.#events = events
    this.#gaps = new GapReporter(events.onGap)
    if (!resume) return
    this.#setSession(resume.sessionId)
    this.setProtocolVersion(resume.protocolVersion)
  }

  get sessionId(): string | undefined {
    return this.#sessionId
  }

  #setSession(id: string): void {
    this.#sessionId = id
    this.#sessionHeaders[headerName.sessionId] = id
  }

  setProtocolVersion(version: string): void {
    this.#sessionHeaders[headerName.protocolVersion] = version
  }

  async send(message: Buffer, options: SendOptions): Promise<void> {
    const { requestId } = options
    const position: StreamPosition = { lastEventId: undefined, retryMs: defaultRetryMs }
    const control: ExchangeControl = { exchange: undefined }
    const sending: Sending = {
      ...{ options, position, control },
      isStream: false,
      awaitsResponse: requestId !== undefined,
      timer: undefined,
    }
    const exchange = this.#inFlight.add(control)
    const sentSession = this.#sessionId
    try {
      const response = await sendToBackend(this.#target, options.sender, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: acceptHeader, ...this.#sessionHeaders },
        body: message,
        signal: options.signal,
        rpcMethod: options.method,
        delivery: options.delivery,
        limit: options.limit,
        // A resumable response is buffered, because the whole response may arrive again.
        splitterFor: (event) =>
          event?.id === undefined && position.lastEventId === undefined
            ? options.splitterFor?.(event)
            : undefined,
        control,
        discardsBody: requestId === undefined,
        onEvent: (event) => this.#onEvent(event, sending),
        onRetry: (retryMs) => setRetry(position, retryMs),
        onStream: (responseHeaders) => {
          sending.isStream = true
          this.#noteSession(responseHeaders)
        },
      })
      const refusal = sentSession === undefined ? 'alive' : classifyResponse(response, requestId)
      if (mayResend(refusal, { isRepeatable: isRepeatable(options.method) || options.repeatable === true }))
        throw new BackendSessionLost()
      if (refusal === 'answered') this.#events.onLost(new BackendSessionLost())
      this.#noteSession(response.headers)
      if (response.stream) {
        if (sending.awaitsResponse) await this.#resume(sending)
        return
      }
      const read = requestId === undefined ? undefined : readMessage(response, this.#target, options.method)
      this.#receive(read instanceof Promise ? await read : read, response, sending)
      if (sending.awaitsResponse) throw protocolError('the response does not match any request')
    } catch (error) {
      if (requestId === undefined || sending.awaitsResponse) throw error
    } finally {
      clearTimeout(sending.timer)
      this.#inFlight.remove(exchange)
    }
  }

  #noteSession(headers: IncomingHttpHeaders): void {
    const id = headers[headerName.sessionId]
    if (typeof id !== 'string' || id === '') return
    if (!/^[\x21-\x7e]+$/.test(id)) this.#target.deviations?.note('session_id_unusable')
    else if (this.#sessionId === undefined) this.#setSession(id)
  }

  /** Handles the message in a response that is not a stream. */
  #receive(message: Message | undefined, response: BackendResponse, sending: Sending): void {
    const { requestId, method } = sending.options
    if (message !== undefined && requestId !== undefined && response.status !== 401) {
      if (message.error && isStatelessError(message.error)) {
        throw new WrongEra('an error from the stateless protocol era', {
          kind: 'error',
          error: message.error,
        })
      }
      // The status decides the outcome of Gatehouse's own requests. Clients receive the backend's error text.
      if (message.error && isOwnRequest(method) && isDecisiveStatus(response.status))
        throw errorOf(response, describeRequest(this.#target, method))
      // Some backends omit the id in errors about requests that they could not read.
      const isOurs = message.kind === 'error' && message.id === undefined
      receiveMessage(isOurs ? { ...message, id: requestId } : message, sending)
      return
    }
    const failure = errorOf(response, describeRequest(this.#target, method))
    if (failure) throw failure
    if (requestId !== undefined) throw protocolError(`no message in the HTTP ${response.status} response`)
  }

  #onEvent(event: SseEvent, sending: Sending): void | Promise<void> {
    noteEventId(event, sending.position)
    if (event.size === 0 || (event.event !== undefined && event.event !== 'message')) return
    return forwardMessageIn(event, this.#target, (message) => receiveMessage(message, sending))
  }

  /** Resumes an interrupted response stream until the response has arrived. */
  async #resume(sending: Sending): Promise<void> {
    const { options, position } = sending
    while (sending.awaitsResponse) {
      if (position.lastEventId === undefined)
        throw protocolError('the stream ended before the response arrived')
      await pause(position.retryMs, options.signal)
      const response = await this.#get(options.sender, options.signal, position, {
        onEvent: (event) => this.#onEvent(event, sending),
        rpcMethod: options.method,
        limit: options.limit,
      })
      if (response.stream) continue
      if (this.#sessionId !== undefined && hasLostSession(response)) {
        this.#events.onLost(new BackendSessionLost())
        // The request may have been executed before the session was lost.
        throw isRepeatable(options.method) || options.repeatable === true
          ? new BackendSessionLost()
          : protocolError('the session ended before the response arrived')
      }
      throw (
        errorOf(response, describeRequest(this.#target, options.method)) ??
        new GatehouseError('BACKEND_PROTOCOL')
      )
    }
  }

  async #get(
    sender: Sender,
    signal: AnySignal,
    position: StreamPosition,
    more: Pick<AuthorizedRequest, 'onEvent' | 'onStream' | 'rpcMethod' | 'limit'>,
  ): Promise<BackendResponse> {
    const last = position.lastEventId
    const headers = {
      accept: 'text/event-stream',
      ...(last === undefined ? {} : { [headerName.lastEventId]: last }),
      ...this.#sessionHeaders,
    }
    return sendToBackend(this.#target, sender, {
      method: 'GET',
      headers,
      signal: AbortSignal.any([signalOf(signal), this.#closed.signal]),
      onRetry: (retryMs) => setRetry(position, retryMs),
      ...more,
    })
  }

  listen(sender: Sender): Promise<void> {
    return new Promise((settled) => {
      void this.#keepListening(sender, settled).finally(settled)
    })
  }

  /**
   * Keeps the GET stream open, with pauses between streams, until the channel closes or the backend offers no stream.
   */
  async #keepListening(sender: Sender, settled: () => void): Promise<void> {
    const position: StreamPosition = { lastEventId: undefined, retryMs: defaultRetryMs }
    const signal = AbortSignal.any([this.#closed.signal, this.#retired.signal])
    const pace = new StreamPace(streamReports(this.#target))
    const onEnd = (): void => {
      this.#gaps.close()
      pace.close()
    }
    signal.addEventListener('abort', onEnd, { once: true })
    let hadStream = false
    let isMissing = false
    const catchUp = (): void => {
      if (isMissing) this.#gaps.note()
      isMissing = false
    }
    while (!signal.aborted) {
      let retryAfterMs: number | undefined
      try {
        const response = await this.#get(sender, signal, position, {
          onEvent: (event) => {
            noteEventId(event, position)
            return receiveEvent(event, this.#target, (message) => {
              pace.delivered()
              return this.#events.onMessage(message)
            })
          },
          onStream: () => {
            hadStream = true
            pace.opened()
            settled()
            catchUp()
          },
        })
        // Without an earlier stream, the session is new, so a rejection means that the backend offers no such stream.
        if (hadStream && this.#sessionId !== undefined && hasLostSession(response)) {
          this.#events.onLost(new BackendSessionLost())
          return
        }
        // The server still considers the previous stream open. Keep rereading the lists until the server accepts a new
        // stream.
        const isTaken = response.status === 409
        if (isTaken) catchUp()
        // The backend does not offer a stream, or no longer offers one.
        else if (!response.stream && !isTemporary(response.status)) return catchUp()
        retryAfterMs = retryAfterOf(response.headers['retry-after'])
      } catch {
        // A stream error does not affect calls. The loop retries below.
      }
      settled()
      isMissing = true
      await pause(pace.ended({ retryMs: position.retryMs, retryAfterMs }), signal).catch(() => {})
    }
  }

  retire(): void {
    this.#retired.abort(new ConnectionClosed())
  }

  async close(sender: Sender, { end }: { readonly end: boolean }): Promise<void> {
    if (this.#closed.signal.aborted) return
    const reason = new ConnectionClosed()
    this.#closed.abort(reason)
    for (const control of this.#inFlight.values()) control.exchange?.fail(reason)
    if (this.#sessionId === undefined || !end) return
    const signal = AbortSignal.timeout(2_000)
    try {
      await sendToBackend(this.#target, sender, { method: 'DELETE', headers: this.#sessionHeaders, signal })
    } catch {
      // The session will eventually expire on the backend.
    }
  }
}

/** Handles a message that arrives in the response to a sent message. */
function receiveMessage(received: Message, sending: Sending): void {
  const { requestId, onMessage } = sending.options
  if (sending.awaitsResponse && received.method === '' && received.id === requestId) {
    sending.awaitsResponse = false
    if (sending.isStream) sending.timer = setTimeout(cutStream, lingerMs, sending.control)
  }
  onMessage(received)
}

function cutStream({ exchange }: ExchangeControl): void {
  exchange?.fail(new Error('the stream stayed open after the response'))
}

/** Classifies a response by the state of the request's session. */
function classifyResponse(
  { status, headers, stream, body }: BackendResponse,
  requestId: string | undefined,
): SessionRefusal {
  if (stream || status < 400) return 'alive'
  return sessionRefusal(status, { headers, requestId }, body)
}

/** True if the response to a GET shows that the backend has lost the session. */
function hasLostSession(response: BackendResponse): boolean {
  return classifyResponse(response, undefined) === 'lost'
}

function noteEventId({ id }: SseEvent, position: StreamPosition): void {
  if (id !== undefined && id !== '') position.lastEventId = lastEventIdHeader(id)
}

function setRetry(position: StreamPosition, retryMs: number): void {
  position.retryMs = clampRetry(retryMs)
}

/** True for error codes that stateless servers use to reject session-era requests. */
function isStatelessError(error: Buffer): boolean {
  const code = new JsonObject(error).value('code')
  return code === rpcCode.versionUnsupported || code === rpcCode.headerMismatch
}

/** Returns the JSON-RPC message in a response. Rejects a successful response with invalid JSON. */
function readMessage(
  response: BackendResponse,
  target: ChannelTarget,
  method: string | undefined,
): Message | undefined | Promise<Message | undefined> {
  if (response.message) return response.message
  if (response.body.length === 0) return undefined
  const type = response.headers['content-type']
  const isJson = typeof type === 'string' && (type === 'application/json' || jsonType.test(type))
  if (!isJson && response.status >= 300) return undefined
  const failed = (cause: unknown): undefined => {
    if (response.status < 300) throw unreadableResponse(response, target, method, cause)
  }
  try {
    const read = readBackendMessage(response.body, target)
    return read instanceof Promise ? read.catch(failed) : read
  } catch (cause) {
    return failed(cause)
  }
}

const jsonType = /^\s*application\/json\b/i
