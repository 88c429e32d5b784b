/**
 * The network address that a request comes from, with or without proxies in front of this server.
 *
 * X-Forwarded-For is read from the right, as long as an entry is itself a proxy: everything to the left of the first
 * other address is the client's own word. Other headers (Forwarded, X-Real-IP) are not read.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { unbracket } from '../addresses.ts'

const maxHops = 32

/** Where requests come from whose connection another process has, or nobody any more. */
const accepted = new WeakMap<IncomingMessage, string>()

/** Names the peer of a request, for `peerAddress`: another process has passed it on, or it outlives its connection. */
export function notePeerAddress(req: IncomingMessage, address: string): void {
  accepted.set(req, address)
}

/** The peer of the connection. */
export function peerAddress(req: IncomingMessage): string {
  return plain(accepted.get(req) ?? req.socket.remoteAddress ?? '')
}

/** The client behind a peer that is a proxy, and behind further ones. */
export function addressBehindProxies(req: IncomingMessage, isProxy: (address: string) => boolean): string {
  const header = req.headers['x-forwarded-for']
  const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').slice(-maxHops)
  let nearest = peerAddress(req)
  for (const hop of hops.toReversed()) {
    const address = addressIn(hop)
    if (address === undefined) break
    nearest = address
    if (!isProxy(address)) break
  }
  return nearest
}

/** The address of one entry, without a port. Undefined: not an address, so nothing to its left counts. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim()
  const bare = isIP(text) > 0 ? text : unbracket(text.replace(/:\d{1,5}$/, ''))
  return isIP(bare) > 0 ? plain(bare) : undefined
}

/** IPv4 addresses mapped into IPv6 are the same addresses. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
