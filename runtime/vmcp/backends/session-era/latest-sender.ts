/**
 * The sender of the latest request on a connection, whose token is the newest. This sender is used for messages that do
 * not belong to a request, such as responses to the backend's requests, and for the GET stream. All senders on one
 * connection have the same identity or the same credential.
 */
import type { Sender } from '../transport/target.ts'

export class LatestSender implements Sender {
  latest: Sender = { caller: undefined, headers: {} }

  get caller(): Sender['caller'] {
    return this.latest.caller
  }

  get headers(): Sender['headers'] {
    return this.latest.headers
  }
}
