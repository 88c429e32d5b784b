/** What carrying a response to the client takes, whoever carries it: the forwarder of the proxy, or a relay of tunnels. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { DispatchController } from '../../net/index.ts'

/** Why a request to the target ends: nobody waits for its response any more. */
export const clientGone: Error = new Error('the client disconnected')

/** Throws for a head that cannot be sent on; undici reports it through onResponseError. */
export function sendHead(
  res: ServerResponse,
  status: number,
  text: string | undefined,
  lines: OutgoingHttpHeaders | string[],
): void {
  if (text === undefined || text === '') res.writeHead(status, lines)
  else res.writeHead(status, text, lines)
}

/** The target waits until the client has read. */
export function waitForDrain(res: ServerResponse, controller: DispatchController): void {
  controller.pause()
  res.once('drain', () => controller.resume())
}

/** Trailers exist in a chunked body only; towards an HTTP/1.0 client Node drops them. */
export function addTrailers(res: ServerResponse, trailers: IncomingHttpHeaders): void {
  for (const name in trailers) res.addTrailers({ [name]: String(trailers[name]) })
}
