/**
 * Determines a client's network address for the audit log: the peer of the connection or, when proxies are trusted, the
 * last address that is not private or loopback.
 */
import type { IncomingMessage } from 'node:http'
import { isRefusedAddress } from '../../../schemas/index.ts'
import { addressBehindProxies, peerAddress } from '../../net/index.ts'

export function clientAddress(
  req: IncomingMessage,
  { trustProxyHeaders }: { readonly trustProxyHeaders: boolean },
): string {
  return trustProxyHeaders ? addressBehindProxies(req, isRefusedAddress) : peerAddress(req)
}
