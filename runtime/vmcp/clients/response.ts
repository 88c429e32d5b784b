/** How a response reaches its client, whatever carries it. */
import type { Era, PassedMembers, ResultPassage } from '../../mcp/index.ts'

export interface ClientResponse {
  /** True once messages before the result have been sent. */
  readonly streaming: boolean
  /** Sends a message before the result. False when that is not possible. */
  send(message: Buffer): boolean
  /** Sends the response message and ends the response. The status counts only when nothing was sent before. */
  end(message: Buffer, status?: number): void
  /** Sends `{…,"result":…}` and ends the response. Members that were passed are not sent once more. */
  endResult(id: string, result: Buffer, passed?: PassedMembers): void
  /** The way of a large result while it arrives; undefined: it has to be whole. `id` is raw JSON. */
  passage?(id: string, era: Era): ResultPassage | undefined
  /** Ends without a response: the request was cancelled. */
  drop(): void
  /** Called when the client goes away before the end. */
  onClose: (() => void) | undefined
  /** Lets whatever is in between know that the response is still to come. */
  keepAlive(): void
}
