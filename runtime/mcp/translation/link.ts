/**
 * A connection to a server, over any transport, that uses the server's protocol era. The transport is a process's
 * standard streams, or HTTP.
 */
import type { Message } from '../message.ts'

export interface ServerLink {
  /** Sends one message. Throws BACKEND_UNREACHABLE if the connection has ended. */
  send(message: Buffer): void
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<string>
  /** Closes the connection. Resolves when all of its resources have been released. */
  close(): Promise<void>
}

/** Opens a connection. `onMessage` receives every server message and must not throw. */
export type OpenLink = (onMessage: (message: Message) => void) => ServerLink

/** Outcome of a request. Exactly one member is set, and its value is a raw JSON object. */
export type LinkOutcome =
  | { readonly result: Buffer; readonly error?: undefined }
  | { readonly error: Buffer; readonly result?: undefined }
