/** One stateless request, and where its response goes, whatever carries both. */
import type { StatelessMeta } from '../era.ts'
import type { JsonObject } from '../json/object.ts'

/** Where the response to a request goes. */
export interface StatelessReply {
  /** True when messages can be sent ahead of the response. */
  readonly streams: boolean
  /** Sends a message ahead of the response. */
  send(message: Buffer): void | Promise<void>
  /** Sends the response and ends the exchange; `code` is that of a JSON-RPC error. */
  end(message: Buffer, code?: unknown): void | Promise<void>
  /** Sends `{…,"result":…}` and ends the exchange: a large result is not copied. */
  endResult(id: string, result: Buffer): void | Promise<void>
  /** Ends without a response: what was listened to is gone. */
  drop(): void
  /** Fires when the client has given the request up. */
  readonly gone: AbortSignal
}

/** A stateless request that has passed the checks of its revision. */
export interface StatelessRequest {
  readonly id: string
  readonly method: string
  readonly params: JsonObject
  readonly meta: StatelessMeta
  /** Requests of one scope may meet at the same server process; those of two never do. */
  readonly scope: string
}
