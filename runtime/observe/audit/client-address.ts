/**
 * The network address of a client, as the audit log names it: the peer of the connection, or, when proxies in front are
 * trusted, the last address that is not one of theirs (private or loopback).
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
