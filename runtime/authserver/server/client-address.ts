/** Returns the network address of a request: the peer, or the client behind proxies that the operator configured. */
import { BlockList, isIP } from 'node:net'
import { LRUCache } from 'lru-cache'
import { parseNetwork } from '../../config/index.ts'
import { addressBehindProxies, type Exchange, peerAddress } from '../../net/index.ts'

/** `trusted` contains addresses and networks (CIDR), which the configuration has validated. */
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
    const isTrusted = family !== 0 && proxies.check(address, family === 4 ? 'ipv4' : 'ipv6')
    known.set(address, isTrusted)
    return isTrusted
  }
  return ({ req }) => {
    const peer = peerAddress(req)
    return isProxy(peer) ? addressBehindProxies(req, isProxy) : peer
  }
}
