/**
 * The seam between the session-era protocol and its two transports: a channel carries JSON-RPC messages to one backend
 * and hands over what comes back.
 *
 * A channel knows HTTP, sessions ids and credentials, but not what messages mean.
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
  /** Raw id of the message when it is a request. */
  readonly requestId: string | undefined
  /** JSON-RPC method of a request; undefined for notifications and responses. */
  readonly method?: string | undefined
  /** True when executing the request twice does no harm. */
  readonly repeatable?: boolean | undefined
  readonly delivery?: Delivery | undefined
  /** Bounds the response to this very message. */
  readonly limit?: ResponseLimit | undefined
  /** Takes a large result apart while it arrives; see transport/http.ts. */
  readonly splitterFor?: BackendRequest['splitterFor']
  /** Receives what arrives on the response to this very message. */
  readonly onMessage: (message: Message) => void
}

export interface BackendChannel {
  /**
   * Sends a message. Resolves when its response has ended, or, if responses arrive on another stream, when it was
   * accepted. Rejects with BACKEND_* errors, and with BackendSessionLost when the backend does not recognize the
   * session and the message may be sent again in a new one.
   */
  send(message: Buffer, options: SendOptions): Promise<void>
  /** Opens the stream for what the backend sends outside of requests. Resolves when it is open, or when there is none. */
  listen(sender: Sender): Promise<void>
  /** Session id that the backend issued. */
  readonly sessionId: string | undefined
  setProtocolVersion(version: string): void
  /** The session is lost: nothing is said unasked any more. Answers that are due may still come, where they can. */
  retire(): void
  /** Ends the streams, and with `end` the session where there is one. */
  close(sender: Sender, options: { readonly end: boolean }): Promise<void>
}

/** What a channel tells its owner. */
export interface ChannelEvents {
  /** A message that belongs to no request of ours. */
  readonly onMessage: (message: Message) => void
  /** What was said unasked may not have been heard: the stream for it was down. */
  readonly onGap: () => void
  /** The channel can carry nothing any more; with BackendSessionLost, responses that are due may still come. */
  readonly onLost: (error: Error) => void
}

/**
 * The backend's answer belongs to the other era: it was not executed, and the backend may have changed. `outcome` is
 * what to make of the response when it turns out that it has not.
 */
export class WrongEra extends GatehouseError {
  readonly outcome: Outcome | undefined

  constructor(why: string, outcome?: Outcome, cause?: Error) {
    super('BACKEND_PROTOCOL', { cause: new Error(why, { cause }) })
    this.name = 'WrongEra'
    this.outcome = outcome
  }
}

/** The connection was closed from this side while something was in flight on it; that says nothing of the backend. */
export class ConnectionClosed extends GatehouseError {
  constructor() {
    super('BACKEND_UNAVAILABLE', { detail: 'the connection was closed' })
    this.name = 'ConnectionClosed'
  }
}

/** The backend no longer recognizes the session, and the message may be sent again in a new one. */
export class BackendSessionLost extends GatehouseError {
  constructor() {
    super('BACKEND_SESSION_LOST')
    this.name = 'BackendSessionLost'
  }
}
