/**
 * The network address that a request counts for: the peer of the connection, or the client behind proxies that the
 * operator named.
 */
import { BlockList, isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { parseNetwork } from '../../config/index.ts'
import { addressBehindProxies, type Exchange, peerAddress } from '../../net/index.ts'

/** `trusted` are addresses and networks (CIDR) that were checked with the configuration. */
export function makeAddressOf(trusted: readonly string[]): (exchange: Exchange) => string {
  if (trusted.length === 0) return ({ req }) => peerAddress(req)
  const proxies = new BlockList()
  for (const text of trusted) {
    const network = parseNetwork(text)
    if (network) proxies.addSubnet(network.address, network.bits, network.family)
  }
  const known = new LRUCache<string, boolean>({ max: 1_000 })
  const isProxy = (address: string): boolean => {
    const found = known.get(address)
    if (found !== undefined) return found
    const family = isIP(address)
    const trusts = family !== 0 && proxies.check(address, family === 4 ? 'ipv4' : 'ipv6')
    known.set(address, trusts)
    return trusts
  }
  return ({ req }) => {
    const peer = peerAddress(req)
    return isProxy(peer) ? addressBehindProxies(req, isProxy) : peer
  }
}
