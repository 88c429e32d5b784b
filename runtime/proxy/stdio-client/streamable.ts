/**
 * Streamable HTTP: each message is a POST with a JSON response or an event stream. A GET stream carries unsolicited
 * messages from the server.
 *
 * Stores the session id and the negotiated revision. In the session era, a broken response stream is resumed with
 * `Last-Event-ID`. The GET stream is also resumed while the session exists.
 * Source: MCP 2025-11-25 and 2026-07-28, transports, "Streamable HTTP".
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import { retryAfterOf, StreamPace } from '../../net/index.ts'
import {
  type Era,
  headerName,
  JsonObject,
  mayResend,
  type Message,
  scanMessage,
  sessionRefusal,
  type SseEvent,
} from '../../mcp/index.ts'
import {
  type BridgedCall,
  isResponseTo,
  BridgedSessionLost,
  type BridgeTransport,
  type TransportEvents,
  withId,
} from './call.ts'
import {
  type RawResponse,
  drop,
  type Http,
  isEventStream,
  longestRetryMs,
  newPosition,
  type ResumePosition,
  readBody,
  statusError,
  unreachable,
} from './http.ts'

/** Maximum number of consecutive attempts to resume a stream without receiving anything new. */
const maxIdleResumes = 5
/** How long a stream may stay open after its response. */
const lingerMs = 2_000
/**
 * Statuses below 500 that may mean that the GET stream is only temporarily rejected. 409: the server still considers
 * the previous stream open.
 */
const temporaryRefusals: ReadonlySet<number> = new Set([401, 408, 409, 425, 429])
const endMs = 2_000

export class StreamableTransport implements BridgeTransport {
  readonly #http: Http
  readonly #events: TransportEvents
  readonly #closed = new AbortController()
  #sessionId: string | undefined
  #version: string | undefined
  #listening: AbortController | undefined
  /** Shared by all sessions, because a stream may repeatedly end together with its session. */
  readonly #pace = new StreamPace({
    onNotKept: () => this.#http.log.warn('the server closes its event stream as soon as it is opened'),
  })

  /** `events` receives the messages from the GET stream, and is notified when the session is lost there. */
  constructor(http: Http, events: TransportEvents) {
    this.#http = http
    this.#events = events
  }

  async deliver(call: BridgedCall): Promise<void> {
    const { message } = call
    if (message.method === 'initialize') this.forget()
    const sentId = call.era === 'session' ? this.#sessionId : undefined
    const done = new AbortController()
    const signal = AbortSignal.any([call.signal, this.#closed.signal, done.signal])
    const response = await this.#http.request('POST', {
      headers: [...this.#session(call.era), ...call.headers],
      body: message.bytes,
      signal,
    })
    if (response.statusCode >= 300) return this.#refused(call, response, sentId, signal)
    const id = response.headers[headerName.sessionId]
    if (message.method === 'initialize' && typeof id === 'string') this.#sessionId = id
    // A success status completes a notification, regardless of the body.
    if (message.kind !== 'request') return drop(response)
    if (isEventStream(response)) return this.#readStream(call, response, signal, done)
    await this.#readWhole(call, response, signal)
  }

  #session(era: Era): readonly string[] {
    if (era === 'stateless') return []
    return [
      ...(this.#sessionId === undefined ? [] : [headerName.sessionId, this.#sessionId]),
      ...(this.#version === undefined ? [] : [headerName.protocolVersion, this.#version]),
    ]
  }

  async #readWhole(call: BridgedCall, response: RawResponse, signal: AbortSignal): Promise<void> {
    let responded = false
    for (const message of await this.#http.messagesIn(readBody(response, signal))) {
      const named = withId(message, call.message.id)
      responded ||= isResponseTo(named, call.message.id)
      await this.#hand(call, named)
    }
    if (!responded) {
      throw new GatehouseError('BACKEND_PROTOCOL', {
        detail: `the HTTP ${response.statusCode} response contains no JSON-RPC response`,
      })
    }
  }

  async #readStream(
    call: BridgedCall,
    first: RawResponse,
    signal: AbortSignal,
    done: AbortController,
  ): Promise<void> {
    const { id } = call.message
    const position = newPosition()
    const responded = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined
    const onEvent = async (event: SseEvent): Promise<void> => {
      for (const message of await this.#messagesOf(event)) {
        const named = withId(message, id)
        if (isResponseTo(named, id)) timer ??= setTimeout(() => done.abort(), lingerMs).unref()
        await this.#hand(call, named)
        if (isResponseTo(named, id)) responded.resolve()
      }
    }
    const read = async (): Promise<void> => {
      try {
        await this.#http.readEvents(first, position, signal, onEvent)
        if (timer === undefined)
          await this.#resume(call, position, signal, onEvent, () => timer !== undefined)
      } catch (error) {
        // The response was delivered, so the end of the stream does not matter.
        if (timer === undefined) throw error
      } finally {
        clearTimeout(timer)
      }
    }
    await Promise.race([read(), responded.promise])
  }

  /** Resumes a broken response stream until the response has arrived. */
  async #resume(
    call: BridgedCall,
    position: ResumePosition,
    signal: AbortSignal,
    onEvent: (event: SseEvent) => Promise<void>,
    responded: () => boolean,
  ): Promise<void> {
    for (let idle = 0; !responded(); idle++) {
      const from = position.lastEventId
      if (from === undefined || call.era === 'stateless' || idle > maxIdleResumes) {
        throw new GatehouseError('BACKEND_PROTOCOL', {
          detail: 'the server ended the stream before its response',
        })
      }
      await pause(Math.min(position.retryMs * 2 ** idle, longestRetryMs), signal)
      const response = await this.#get(from, signal)
      if (response.statusCode === 200 && isEventStream(response)) {
        await this.#http.readEvents(response, position, signal, onEvent)
        if (position.lastEventId !== from) idle = -1
      } else {
        drop(response)
        if (response.statusCode < 500) throw statusError(response.statusCode)
      }
    }
  }

  async #messagesOf(event: SseEvent): Promise<readonly Message[]> {
    if (event.size === 0 || (event.event !== undefined && event.event !== 'message')) return []
    return this.#http.messagesIn(event.data())
  }

  async #hand(call: BridgedCall, message: Message): Promise<void> {
    if (call.message.method === 'initialize' && message.result && isResponseTo(message, call.message.id)) {
      this.#version = new JsonObject(message.result).text('protocolVersion')
    }
    await call.onMessage(message)
  }

  /**
   * Handles a rejected request: delivers the JSON-RPC error in its body, throws an error for its status, or reports a
   * lost session.
   */
  async #refused(
    call: BridgedCall,
    response: RawResponse,
    sentId: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { statusCode } = response
    const body = await readBody(response, signal)
    const unreachableError = unreachable(statusCode, body)
    if (unreachableError) throw unreachableError
    const { id } = call.message
    const head = { headers: response.headers, requestId: id }
    const refusal = sentId === undefined ? 'alive' : sessionRefusal(statusCode, head, body)
    // The effects of a tool are unknown here, so a request that the server has answered is not sent again.
    if (mayResend(refusal, { isRepeatable: false })) throw new BridgedSessionLost()
    if (refusal === 'answered') this.#events.onLost()
    const error = errorIn(body)
    if (error?.error === undefined || id === undefined) throw statusError(statusCode)
    await call.onMessage(withId(error, id))
  }

  listen(): void {
    this.#listening?.abort()
    const controller = new AbortController()
    this.#listening = controller
    const signal = AbortSignal.any([controller.signal, this.#closed.signal])
    this.#keepListening(signal).catch((error: unknown) => {
      if (!signal.aborted) this.#http.log.warn("the server's event stream ended", { err: error })
    })
  }

  async #keepListening(signal: AbortSignal): Promise<void> {
    let position = newPosition()
    let hadStream = false
    const pace = this.#pace
    signal.addEventListener('abort', () => pace.close(), { once: true })
    for (;;) {
      const from = position.lastEventId
      const response = await this.#getReachable(from, signal)
      if (response === undefined) {
        // The server may be unavailable only briefly, and the session may survive the outage.
      } else if (response.statusCode === 200 && isEventStream(response)) {
        hadStream = true
        pace.opened()
        await this.#http.readEvents(response, position, signal, async (event) => {
          for (const message of await this.#messagesOf(event)) {
            pace.delivered()
            await this.#events.onMessage(message)
          }
        })
      } else {
        const body = await readBody(response, signal)
        // The session was just opened, so an initial rejection means that the server does not offer a GET stream.
        if (!hadStream && response.statusCode < 500 && response.statusCode !== 429) return
        if (
          this.#sessionId !== undefined &&
          sessionRefusal(response.statusCode, { headers: response.headers }, body) === 'lost'
        )
          return this.#events.onLost()
        if (response.statusCode < 500 && !temporaryRefusals.has(response.statusCode)) {
          // The server does not offer a GET stream. If the server may only have dropped the event, try once more
          // without the id.
          if (from === undefined) return
          position = newPosition()
        }
      }
      const retryAfterMs = retryAfterOf(firstOf(response?.headers['retry-after']))
      await pause(pace.ended({ retryMs: position.retryMs, retryAfterMs }), signal)
    }
  }

  /** Returns undefined if the server cannot be reached. */
  async #getReachable(
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): Promise<RawResponse | undefined> {
    try {
      return await this.#get(lastEventId, signal)
    } catch (error) {
      if (error instanceof GatehouseError && error.code === 'BACKEND_UNREACHABLE') return undefined
      throw error
    }
  }

  #get(lastEventId: string | undefined, signal: AbortSignal): Promise<RawResponse> {
    const resume = lastEventId === undefined ? [] : [headerName.lastEventId, lastEventId]
    return this.#http.request('GET', { headers: [...this.#session('session'), ...resume], signal })
  }

  forget(): void {
    this.#listening?.abort()
    this.#listening = undefined
    this.#sessionId = undefined
    this.#version = undefined
  }

  async close(): Promise<void> {
    this.#listening?.abort()
    if (this.#sessionId !== undefined) {
      try {
        const signal = AbortSignal.timeout(endMs)
        drop(await this.#http.request('DELETE', { headers: this.#session('session'), signal }))
      } catch (error) {
        this.#http.log.debug('ending the session failed', { err: error })
      }
    }
    this.#closed.abort()
  }
}

/** Parses the JSON-RPC error in a rejection. */
function errorIn(body: Buffer): Message | undefined {
  try {
    const message = scanMessage(body)
    return message.kind === 'error' ? message : undefined
  } catch {
    return undefined
  }
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0]
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal })
}
