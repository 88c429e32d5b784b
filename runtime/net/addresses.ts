import { isIPv4 } from 'node:net'

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
