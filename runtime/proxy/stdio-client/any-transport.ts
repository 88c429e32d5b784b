/**
 * Uses the first message to detect which HTTP transport a server uses.
 *
 * For an address that ends in `/sse`, the deprecated HTTP+SSE transport is tried first. For any other address, a POST
 * is tried first. If the response indicates a server without streamable HTTP (400, 404 or 405, not JSON-RPC), HTTP+SSE
 * is tried.
 * Source: MCP 2025-11-25, transports, "Backwards Compatibility".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { BridgedCall, BridgeTransport, TransportEvents } from './call.ts'
import type { Http } from './http.ts'
import { OldSseTransport } from './old-sse.ts'
import { StreamableTransport } from './streamable.ts'

export class AnyTransport implements BridgeTransport {
  readonly #streamable: StreamableTransport
  readonly #old: OldSseTransport
  readonly #oldFirst: boolean
  #chosen: BridgeTransport | undefined

  constructor(http: Http, events: TransportEvents) {
    this.#streamable = new StreamableTransport(http, events)
    this.#old = new OldSseTransport(http, events)
    this.#oldFirst = http.endpoint.pathname.endsWith('/sse')
  }

  async deliver(call: BridgedCall): Promise<void> {
    if (this.#chosen) return this.#chosen.deliver(call)
    if (this.#oldFirst) {
      await this.#chooseFirst()
      return this.deliver(call)
    }
    try {
      await this.#streamable.deliver(call)
      this.#chosen ??= this.#streamable
    } catch (error) {
      if (!isRefusal(error) || call.message.method !== 'initialize') throw error
      await this.#fallBack(error)
      await this.#old.deliver(call)
    }
  }

  async #chooseFirst(): Promise<void> {
    try {
      await this.#old.connect()
      this.#chosen = this.#old
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.#chosen = this.#streamable
    }
  }

  /** Throws the original rejection when HTTP+SSE fails as well. */
  async #fallBack(refusal: unknown): Promise<void> {
    try {
      await this.#old.connect()
      this.#chosen = this.#old
    } catch {
      throw refusal
    }
  }

  listen(): void {
    this.#chosen?.listen()
  }

  forget(): void {
    this.#chosen?.forget()
  }

  async close(): Promise<void> {
    await Promise.all([this.#streamable.close(), this.#old.close()])
  }
}

/** True when the server responded but does not support this kind of request. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof GatehouseError) || error.code !== 'BACKEND_PROTOCOL') return false
  const status: unknown =
    typeof error.data === 'object' && error.data !== null && 'status' in error.data
      ? error.data.status
      : undefined
  return status === 200 || status === 400 || status === 404 || status === 405
}
