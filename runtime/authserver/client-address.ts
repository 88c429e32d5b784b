/**
 * The network address that a request counts for, when proxies stand in front of this server.
 *
 * It is the peer of the connection. Only if the peer is a proxy that the operator named, the last entry of
 * X-Forwarded-For is believed, and so on from the right as long as the entry is itself such a proxy: everything to the
 * left of the first untrusted client is that untrusted client's own word. Other headers (Forwarded, X-Real-IP) are not read.
 */
import { BlockList, isIP } from 'node:net'
import { parseNetwork } from '../config/index.ts'
import { type Exchange, unbracket } from '../net/index.ts'

const maxHops = 32

/** `trusted` are addresses and networks (CIDR) that were checked with the configuration. */
export function makeAddressOf(trusted: readonly string[]): (exchange: Exchange) => string {
  if (trusted.length === 0) return peerOf
  const proxies = new BlockList()
  for (const text of trusted) {
    const network = parseNetwork(text)
    if (network) proxies.addSubnet(network.address, network.bits, network.family)
  }
  const isProxy = (address: string): boolean =>
    isIP(address) !== 0 && proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  return (exchange) => {
    const header = exchange.req.headers['x-forwarded-for']
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').slice(-maxHops)
    let nearest = peerOf(exchange)
    while (isProxy(nearest)) {
      const hop = addressIn(hops.pop() ?? '')
      if (hop === undefined) break
      nearest = hop
    }
    return nearest
  }
}

function peerOf({ req }: Exchange): string {
  return plain(req.socket.remoteAddress ?? '')
}

/** The address of one entry, without a port; undefined for anything else. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim()
  const bare = isIP(text) > 0 ? text : unbracket(text.replace(/:\d{1,5}$/, ''))
  return isIP(bare) > 0 ? plain(bare) : undefined
}

/** IPv4 addresses mapped into IPv6 are the same addresses. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
