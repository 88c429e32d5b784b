/**
 * Network addresses of hosts and clients.
 *
 * Determines a client's address with or without proxies in front of this server. Reads X-Forwarded-For from right to
 * left while the entries are proxies. Entries to the left of the first address that is not a proxy are supplied by the
 * client and cannot be trusted. Ignores other headers (Forwarded, X-Real-IP).
 */
import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'

const maxHops = 32

/** Peer addresses for requests whose connection belongs to another process or no longer exists. */
const noted = new WeakMap<IncomingMessage, string>()

/**
 * Sets the address that `peerAddress` returns, for a request that another process forwarded or that outlives its
 * connection.
 */
export function setPeerAddress(req: IncomingMessage, address: string): void {
  noted.set(req, address)
}

/** Returns the peer address of the connection. */
export function peerAddress(req: IncomingMessage): string {
  return plain(noted.get(req) ?? req.socket.remoteAddress ?? '')
}

/** Returns the address of the client behind one or more proxies. */
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

/** Returns the address in an entry, without its port. Returns undefined for an invalid entry, which ends the search. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim()
  const bare = isIP(text) > 0 ? text : unbracket(text.replace(/:\d{1,5}$/, ''))
  return isIP(bare) > 0 ? plain(bare) : undefined
}

/** Converts an IPv4-mapped IPv6 address to IPv4 form. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * True for `localhost` and its subdomains, for 127.0.0.0/8 and for ::1. Ignores brackets and a trailing dot. For the
 * addresses that Gatehouse may connect to, see schemas/addresses.ts.
 */
export function isLoopbackHost(host: string): boolean {
  const bare = unbracket(host).toLowerCase().replace(/\.$/, '')
  if (bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1') return true
  return isIPv4(bare) && bare.startsWith('127.')
}

/** Strips the brackets from an IPv6 literal. */
export function unbracket(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}
