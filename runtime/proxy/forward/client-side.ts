/** Helpers for writing a response to the client, shared by the proxy's forwarder and tunnel relays. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { DispatchController } from '../../net/index.ts'

/** Aborts a request to the target when the client disconnects. */
export const clientGone: Error = new Error('the client disconnected')

/** Throws if the head cannot be sent; undici reports the error through onResponseError. */
export function sendHead(
  res: ServerResponse,
  status: number,
  text: string | undefined,
  lines: OutgoingHttpHeaders | string[],
): void {
  if (text === undefined || text === '') res.writeHead(status, lines)
  else res.writeHead(status, text, lines)
}

/** Pauses the target until the client has read the buffered data. */
export function waitForDrain(res: ServerResponse, controller: DispatchController): void {
  controller.pause()
  res.once('drain', () => controller.resume())
}

/** Node drops trailers for HTTP/1.0 clients, because trailers require a chunked body. */
export function addTrailers(res: ServerResponse, trailers: IncomingHttpHeaders): void {
  for (const name in trailers) res.addTrailers({ [name]: String(trailers[name]) })
}
