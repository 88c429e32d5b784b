/**
 * Implements the session era over the deprecated HTTP+SSE transport. The backend sends all messages on one GET stream.
 * The stream's `endpoint` event contains the URL for POSTs.
 *
 * The endpoint must have the same origin as the backend. Otherwise, a backend could redirect credentials to another
 * host.
 * Source: MCP 2024-11-05, transports, "HTTP with SSE".
 */
import { reasonOf } from '../../../net/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'
import { headerName, mayResend, protocolError, sessionRefusal, type SseEvent } from '../../../mcp/index.ts'
import {
  type BackendChannel,
  type ChannelEvents,
  ConnectionClosed,
  type SendOptions,
  BackendSessionLost,
} from './channel.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import { receiveEvent } from '../transport/read-message.ts'
import { describeRequest, isRepeatable, sendToBackend } from '../transport/send.ts'
import { errorOf } from '../transport/status-error.ts'

const maxEndpointBytes = 64 * 1024
const streamEnded = 'the backend closed its event stream'

export class SseChannel implements BackendChannel {
  readonly sessionId = undefined
  readonly #target: ChannelTarget
  readonly #events: ChannelEvents
  readonly #closed = new AbortController()
  #version: string | undefined
  #endpoint: Promise<URL> | undefined

  constructor(target: ChannelTarget, events: ChannelEvents) {
    this.#target = target
    this.#events = events
  }

  setProtocolVersion(version: string): void {
    this.#version = version
  }

  async send(message: Buffer, options: SendOptions): Promise<void> {
    this.#endpoint ??= this.#connect(options.sender)
    const url = await this.#endpoint
    const response = await sendToBackend(this.#target, options.sender, {
      method: 'POST',
      url,
      headers: this.#headers({ 'content-type': 'application/json' }),
      body: message,
      signal: options.signal,
      rpcMethod: options.method,
      delivery: options.delivery,
      // Responses arrive on the event stream.
      discardsBody: true,
    })
    const { status, headers, body } = response
    const refusal = sessionRefusal(status, { headers, requestId: options.requestId }, body)
    if (mayResend(refusal, { isRepeatable: isRepeatable(options.method) || options.repeatable === true }))
      throw new BackendSessionLost()
    const failure = errorOf(response, describeRequest(this.#target, options.method))
    if (failure) throw failure
  }

  /** Closes the stream. All responses arrive on this stream. Without its session, the stream is useless. */
  retire(): void {
    if (this.#closed.signal.aborted) return
    this.#closed.abort(new ConnectionClosed())
    this.#events.onLost(new GatehouseError('BACKEND_UNREACHABLE', { cause: new Error('the session ended') }))
  }

  /** Opens the stream. Resolves to the URL from the stream's `endpoint` event. */
  #connect(sender: Sender): Promise<URL> {
    return new Promise((resolve, reject) => {
      const reportLoss = (error: Error): void => {
        reject(error)
        if (!this.#closed.signal.aborted) this.#events.onLost(error)
      }
      this.#stream(sender, resolve).then(
        () => reportLoss(new GatehouseError('BACKEND_UNREACHABLE', { detail: streamEnded })),
        (error: unknown) => reportLoss(error instanceof Error ? error : reasonOf(this.#closed.signal)),
      )
    })
  }

  async #stream(sender: Sender, onEndpoint: (url: URL) => void): Promise<void> {
    const response = await sendToBackend(this.#target, sender, {
      method: 'GET',
      headers: this.#headers({ accept: 'text/event-stream' }),
      signal: this.#closed.signal,
      onEvent: (event) => this.#onEvent(event, onEndpoint),
    })
    if (!response.stream)
      throw errorOf(response, describeRequest(this.#target, undefined)) ?? protocolError('no event stream')
  }

  #onEvent(event: SseEvent, onEndpoint: (url: URL) => void): void | Promise<void> {
    if (event.event === 'endpoint') {
      const { url } = this.#target
      const data = event.size > maxEndpointBytes ? undefined : event.data()
      const text = Buffer.isBuffer(data) ? data.toString() : ''
      const endpoint = text !== '' && URL.canParse(text, url.href) ? new URL(text, url) : undefined
      if (endpoint?.origin !== url.origin) {
        throw new GatehouseError('BACKEND_PROTOCOL', {
          cause: new Error("the endpoint does not have the backend's origin"),
        })
      }
      onEndpoint(endpoint)
      return undefined
    }
    return receiveEvent(event, this.#target, this.#events.onMessage)
  }

  listen(): Promise<void> {
    return Promise.resolve()
  }

  #headers(own: Readonly<Record<string, string>>): Record<string, string> {
    return this.#version === undefined ? { ...own } : { ...own, [headerName.protocolVersion]: this.#version }
  }

  close(): Promise<void> {
    this.#closed.abort(new ConnectionClosed())
    return Promise.resolve()
  }
}
