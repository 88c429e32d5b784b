/** Delivers a response to its client, independent of the transport. */
import type { Era, PassedMembers, ResultPassage } from '../../mcp/index.ts'

export interface ClientResponse {
  /** True once messages before the result have been sent. */
  readonly streaming: boolean
  /** Sends a message before the result. Returns false if the client cannot receive the message. */
  send(message: Buffer): boolean
  /** Sends the response message and ends the response. The status is used only if nothing has been sent before. */
  end(message: Buffer, status?: number): void
  /**
   * Sends `{…,"result":…}` and ends the response. Omits the `passed` members, which the client has already received.
   */
  endResult(id: string, result: Buffer, passed?: PassedMembers): void
  /** Streams a large result as it arrives. Undefined if the result must be sent whole. `id` is raw JSON. */
  streamResult?(id: string, era: Era): ResultPassage | undefined
  /** Ends the response without a message, because the request was cancelled. */
  drop(): void
  /** Called when the client disconnects before the end of the response. */
  onClose: (() => void) | undefined
  /** Keeps intermediaries from closing the connection while the response is pending. */
  keepAlive(): void
}
