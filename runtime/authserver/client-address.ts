/**
 * The network address that a request counts for: the peer of the connection, or the client behind proxies that the
 * operator named.
 */
import { BlockList, isIP } from 'node:net'
import { parseNetwork } from '../config/index.ts'
import { addressBehindProxies, type Exchange, peerAddress } from '../net/index.ts'

/** `trusted` are addresses and networks (CIDR) that were checked with the configuration. */
export function makeAddressOf(trusted: readonly string[]): (exchange: Exchange) => string {
  if (trusted.length === 0) return ({ req }) => peerAddress(req)
  const proxies = new BlockList()
  for (const text of trusted) {
    const network = parseNetwork(text)
    if (network) proxies.addSubnet(network.address, network.bits, network.family)
  }
  const isProxy = (address: string): boolean =>
    isIP(address) !== 0 && proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  return ({ req }) => {
    const peer = peerAddress(req)
    return isProxy(peer) ? addressBehindProxies(req, isProxy) : peer
  }
}
