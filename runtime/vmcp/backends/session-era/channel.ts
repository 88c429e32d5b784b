/**
 * The interface between the session-era protocol and its two transports. A channel exchanges JSON-RPC messages with one
 * backend.
 *
 * A channel handles HTTP, session ids and credentials, but does not interpret messages.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Message } from '../../../mcp/index.ts'
import type { AnySignal } from '../../../net/index.ts'
import type { Delivery, ResponseLimit } from '../../model/delivery.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { BackendRequest } from '../transport/http.ts'
import type { Sender } from '../transport/target.ts'

export interface SendOptions {
  readonly sender: Sender
  readonly signal: AnySignal
  /** Raw id of the message if it is a request. */
  readonly requestId: string | undefined
  /** JSON-RPC method of a request. Undefined for notifications and responses. */
  readonly method?: string | undefined
  /** True if it is safe to execute the request twice. */
  readonly repeatable?: boolean | undefined
  readonly delivery?: Delivery | undefined
  /** Limit for the response to this message. */
  readonly limit?: ResponseLimit | undefined
  /** Returns the splitter for a large result. See transport/http.ts. */
  readonly splitterFor?: BackendRequest['splitterFor']
  /** Receives the messages in the response to this message. */
  readonly onMessage: (message: Message) => void
}

export interface BackendChannel {
  /**
   * Sends a message. Resolves when the response to the message has ended. If responses arrive on another stream,
   * resolves when the backend has accepted the message. Rejects with BACKEND_* errors. Rejects with BackendSessionLost
   * if the backend does not recognize the session and the message may be sent again in a new session.
   */
  send(message: Buffer, options: SendOptions): Promise<void>
  /**
   * Opens the stream for messages that do not belong to a request. Resolves when the stream is open or the backend does
   * not offer one.
   */
  listen(sender: Sender): Promise<void>
  /** Session id issued by the backend. */
  readonly sessionId: string | undefined
  setProtocolVersion(version: string): void
  /**
   * Closes the stream for messages that do not belong to a request, because the session is lost. Responses to pending
   * requests can still arrive.
   */
  retire(): void
  /** Closes the streams. If `end` is true, also ends the session. */
  close(sender: Sender, options: { readonly end: boolean }): Promise<void>
}

/** Events that a channel reports to its owner. */
export interface ChannelEvents {
  /** A message that does not belong to any of Gatehouse's requests. */
  readonly onMessage: (message: Message) => void
  /** Called when messages may have been lost because their stream was interrupted. */
  readonly onGap: () => void
  /**
   * Called when the channel is no longer usable. After BackendSessionLost, responses to pending requests may still
   * arrive.
   */
  readonly onLost: (error: Error) => void
}

/**
 * The response belongs to the other protocol era. The backend did not execute the request and might have changed eras.
 * `outcome` is the request's outcome if the backend turns out not to have changed eras.
 */
export class WrongEra extends GatehouseError {
  readonly outcome: Outcome | undefined

  constructor(why: string, outcome?: Outcome, cause?: Error) {
    super('BACKEND_PROTOCOL', { cause: new Error(why, { cause }) })
    this.name = 'WrongEra'
    this.outcome = outcome
  }
}

/** Gatehouse closed the connection while a request was in flight. This error is unrelated to the backend's health. */
export class ConnectionClosed extends GatehouseError {
  constructor() {
    super('BACKEND_UNAVAILABLE', { detail: 'the connection was closed' })
    this.name = 'ConnectionClosed'
  }
}

/** The backend no longer recognizes the session, and the message may be sent again in a new session. */
export class BackendSessionLost extends GatehouseError {
  constructor() {
    super('BACKEND_SESSION_LOST')
    this.name = 'BackendSessionLost'
  }
}
