/** Where the bridge gets conversations with the server from: a process for each, or one process that they share. */

import type { OpenLink } from '../../mcp/index.ts'

export interface ServerSource {
  /** A conversation of its own, as far as whoever takes it can see. */
  readonly take: OpenLink
  /** Resolves with the reason when there will be no server at all. */
  readonly failed: Promise<string>
  /**
   * Start time of a server that was asked and has not responded yet, in milliseconds since the epoch; undefined
   * otherwise.
   */
  readonly startingSince?: number | undefined
  /** Begins to hold the server ready. */
  start(): void
  /** Begins no more conversations. */
  close(): Promise<void>
  /** Ends those that their users have left. */
  closeAll(): Promise<void>
}
