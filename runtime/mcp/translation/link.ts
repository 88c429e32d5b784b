/**
 * One conversation with a server in the server's own era, whatever carries it: a process on its standard streams, or an
 * HTTP server.
 */
import type { Message } from '../message.ts'

export interface ServerLink {
  /** Sends one message. Throws BACKEND_UNREACHABLE when the conversation is over. */
  send(message: Buffer): void
  /** Resolves with the reason when the conversation is over. */
  readonly ended: Promise<string>
  /** Ends the conversation; resolves when nothing is left of it. */
  close(): Promise<void>
}

/** Begins a conversation. `onMessage` gets everything the server says; it must not throw. */
export type OpenLink = (onMessage: (message: Message) => void) => ServerLink

/** How a request ended at the server: exactly one raw JSON object. */
export type LinkOutcome =
  | { readonly result: Buffer; readonly error?: undefined }
  | { readonly error: Buffer; readonly result?: undefined }
