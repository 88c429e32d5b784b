/** How a response reaches its client, whatever carries it. */
export interface ClientResponse {
  /** True once messages before the result have been sent. */
  readonly streaming: boolean
  /** Sends a message before the result. False when that is not possible. */
  send(message: Buffer): boolean
  /** Sends the response message and ends the response. The status counts only when nothing was sent before. */
  end(message: Buffer, status?: number): void
  /** Sends `{…,"result":…}` and ends the response. */
  endResult(id: string, result: Buffer): void
  /** Ends without a response: the request was cancelled. */
  drop(): void
  /** Calls back when the client goes away before the end; the response takes that back. */
  onClose(listener: () => void): () => void
  /** Lets whatever is in between know that the response is still to come. */
  keepAlive(): void
}
