/**
 * The deprecated HTTP+SSE transport: one GET stream carries all responses, and its first event contains the URL for
 * POST.
 *
 * The URL for POST must be on the server's own origin. When the stream ends, the session ends: pending requests fail,
 * and the bridge opens a new session.
 * Source: MCP 2024-11-05, transports, "HTTP with SSE".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { mayResend, type Message, sessionRefusal } from '../../mcp/index.ts'
import {
  type BridgedCall,
  BridgedSessionLost,
  type BridgeTransport,
  otherIdType,
  type TransportEvents,
  withId,
} from './call.ts'
import {
  abandon,
  type RawResponse,
  drop,
  type Http,
  isEventStream,
  newPosition,
  readBody,
  statusError,
  unreachable,
} from './http.ts'

interface Waiting {
  readonly call: BridgedCall
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface Connection {
  readonly endpoint: Promise<URL>
  /** Pending requests, keyed by raw JSON-RPC id. */
  readonly waiting: Map<string, Waiting>
  readonly end: AbortController
}

const endpointMs = 10_000
const maxEndpointBytes = 64 * 1024

export class OldSseTransport implements BridgeTransport {
  readonly #http: Http
  readonly #events: TransportEvents
  #connection: Connection | undefined

  constructor(http: Http, events: TransportEvents) {
    this.#http = http
    this.#events = events
  }

  /** Opens the stream if necessary. Rejects with GatehouseError when the server does not support this transport. */
  async connect(): Promise<void> {
    await this.#connected().endpoint
  }

  #connected(): Connection {
    this.#connection ??= this.#open()
    return this.#connection
  }

  async deliver(call: BridgedCall): Promise<void> {
    const connection = this.#connected()
    const url = await connection.endpoint
    const signal = AbortSignal.any([call.signal, connection.end.signal])
    const responded = this.#wait(connection, call)
    try {
      const response = await this.#http.request('POST', {
        url,
        headers: [],
        body: call.message.bytes,
        signal,
      })
      if (response.statusCode >= 300) throw await refusal(response, signal, call.message.id)
      drop(response)
      await responded
    } finally {
      if (call.message.id !== undefined) connection.waiting.delete(call.message.id)
    }
  }

  /** Resolves with the response to a request, or immediately for any other message. */
  #wait({ waiting }: Connection, call: BridgedCall): Promise<void> {
    const { kind, id } = call.message
    if (kind !== 'request' || id === undefined) return Promise.resolve()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.set(id, { call, resolve, reject })
    call.signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true })
    // Awaited only after the message has been sent.
    promise.catch(() => undefined)
    return promise
  }

  #open(): Connection {
    const { promise: endpoint, resolve, reject } = Promise.withResolvers<URL>()
    endpoint.catch(() => undefined)
    const connection: Connection = { endpoint, waiting: new Map(), end: new AbortController() }
    const { end } = connection
    const late = new GatehouseError('BACKEND_TIMEOUT', {
      detail: 'the server sent no endpoint event in time',
    })
    const timer = setTimeout(() => end.abort(late), endpointMs)
    let opened = false
    const onEndpoint = (url: URL): void => {
      clearTimeout(timer)
      opened = true
      resolve(url)
    }
    void this.#read(connection, onEndpoint).then((error) => {
      clearTimeout(timer)
      reject(error)
      for (const { reject: fail } of connection.waiting.values()) fail(error)
      if (this.#connection !== connection) return
      this.#connection = undefined
      if (opened) this.#events.onLost()
    })
    return connection
  }

  /** Reads the stream to its end, and resolves with the reason why the stream ended. */
  async #read(connection: Connection, onEndpoint: (url: URL) => void): Promise<Error> {
    const { signal } = connection.end
    try {
      const response = await this.#http.request('GET', { headers: [], signal })
      if (response.statusCode !== 200 || !isEventStream(response))
        return await refusalOfStream(response, signal)
      await this.#http.readEvents(response, newPosition(), signal, async (said) => {
        const { event, size } = said
        if (event === 'endpoint') onEndpoint(this.#endpointOf(await said.data()))
        else if (size > 0 && (event === undefined || event === 'message')) {
          for (const message of await this.#http.messagesIn(said.data()))
            await this.#hand(connection, message)
        }
      })
      return new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the connection to the server was lost' })
    } catch (error) {
      return error instanceof Error ? error : new GatehouseError('BACKEND_UNREACHABLE', { cause: error })
    }
  }

  #endpointOf(data: Buffer): URL {
    const from = this.#http.endpoint
    const text = data.length > maxEndpointBytes ? '' : data.toString()
    const url = text !== '' && URL.canParse(text, from.href) ? new URL(text, from) : undefined
    if (url?.origin === from.origin) return url
    throw new GatehouseError('BACKEND_PROTOCOL', {
      detail: 'the server sent an endpoint on another origin',
    })
  }

  async #hand({ waiting }: Connection, message: Message): Promise<void> {
    const due = message.method === '' ? waitingFor(waiting, message.id) : undefined
    if (!due) return this.#events.onMessage(message)
    await due.call.onMessage(withId(message, due.call.message.id))
    due.resolve()
  }

  listen(): void {
    // The stream is already open and carries all messages.
  }

  forget(): void {
    const connection = this.#connection
    this.#connection = undefined
    connection?.end.abort(new BridgedSessionLost())
  }

  close(): Promise<void> {
    this.forget()
    return Promise.resolve()
  }
}

function waitingFor(waiting: Connection['waiting'], id: string | undefined): Waiting | undefined {
  if (id === undefined) return undefined
  return waiting.get(id) ?? waiting.get(otherIdType(id) ?? '')
}

/** Returns the error for a rejected stream. */
async function refusalOfStream(response: RawResponse, signal: AbortSignal): Promise<Error> {
  const { statusCode } = response
  if (statusCode === 200) {
    abandon(response)
    const detail = 'the server does not open an event stream at this address'
    return new GatehouseError('BACKEND_PROTOCOL', { detail, data: { status: 200 } })
  }
  return unreachable(statusCode, await readBody(response, signal)) ?? statusError(statusCode)
}

/** Returns the error for a rejected message in a session. */
async function refusal(
  response: RawResponse,
  signal: AbortSignal,
  requestId: string | undefined,
): Promise<Error> {
  const { statusCode, headers } = response
  const body = await readBody(response, signal)
  const lost = sessionRefusal(statusCode, { headers, requestId }, body)
  if (mayResend(lost, { isRepeatable: false })) return new BridgedSessionLost()
  return unreachable(statusCode, body) ?? statusError(statusCode)
}
