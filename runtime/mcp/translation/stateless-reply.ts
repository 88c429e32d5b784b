/** A stateless request and its reply, independent of the transport. */
import type { StatelessMeta } from '../era.ts'
import type { JsonObject } from '../json/object.ts'

/** Sends the response to a request. */
export interface StatelessReply {
  /** True if messages can be sent before the response. */
  readonly streams: boolean
  /** Sends a message before the response. */
  send(message: Buffer): void | Promise<void>
  /** Sends the response and ends the exchange. `code` is the code of a JSON-RPC error response. */
  end(message: Buffer, code?: unknown): void | Promise<void>
  /** Sends `{…,"result":…}` without copying a large result, and ends the exchange. */
  endResult(id: string, result: Buffer): void | Promise<void>
  /** Ends the exchange without a response, because the source of the subscription has ended. */
  drop(): void
  /** Aborts when the client cancels the request or disconnects. */
  readonly gone: AbortSignal
}

/** A stateless request that has passed the checks for its revision. */
export interface StatelessRequest {
  readonly id: string
  readonly method: string
  readonly params: JsonObject
  readonly meta: StatelessMeta
  /** Requests in the same scope may share a server process. Requests in different scopes never share a process. */
  readonly scope: string
}
