/**
 * The network address of a client, as the audit log names it.
 *
 * It is the peer of the connection, unless proxies in front are trusted: then it is the last address in
 * X-Forwarded-For that is not one of theirs (private or loopback), read from the right, since everything to the left
 * of it is the client's own word.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isRefusedAddress } from '../../../schemas/index.ts'
import { unbracket } from '../../net/index.ts'

const MAX_HOPS = 32

export function clientAddress(req: IncomingMessage, trustProxyHeaders: boolean): string {
  const peer = plain(req.socket.remoteAddress ?? '')
  if (!trustProxyHeaders) return peer
  const header = req.headers['x-forwarded-for']
  const text = Array.isArray(header) ? header.join(',') : (header ?? '')
  const hops = text.split(',').slice(-MAX_HOPS).map(addressIn)
  let nearest = peer
  for (const hop of hops.toReversed()) {
    if (hop === undefined) break
    nearest = hop
    if (!isRefusedAddress(hop)) break
  }
  return nearest
}

/** The address of one entry, without a port. Undefined: not an address, so nothing to its left counts. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim()
  const bare = isIP(text) > 0 ? text : unbracket(text.replace(/:\d{1,5}$/, ''))
  return isIP(bare) > 0 ? plain(bare) : undefined
}

/** IPv4 addresses mapped into IPv6 are written as IPv4. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
