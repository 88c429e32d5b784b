/**
 * Allows access to the console without a login, but only from this machine and only with the token printed when the
 * console started.
 *
 * The token is in the fragment of the printed address, so it appears in no log or Referer header. The page sends the
 * token in a header, because the browser would send a cookie to every port of this host. Requests through a proxy, from
 * other machines or with another host name are rejected.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Caller, isLoopbackHost, peerAddress } from '../../net/index.ts'
import type { VisitorAccess, Visitor } from './visitor.ts'

const launchHeader = 'x-gatehouse-launch'
const forwardedHeaders = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

export function anonymousAccess(token: string, caller: Caller): VisitorAccess {
  const visitor: Visitor = {
    user: undefined,
    roles: ['viewer', 'operator', 'auditor'],
    caller,
    csrf: createHmac('sha256', token).update('csrf').digest('base64url'),
    freshLogin: true,
    isLive: () => true,
  }
  return {
    anonymous: true,
    visitor({ req }) {
      if (!isLoopbackHost(peerAddress(req)) || forwardedHeaders.some((name) => name in req.headers))
        throw new GatehouseError('FORBIDDEN', {
          detail: 'without a login, the console accepts only direct requests from this machine',
        })
      return isEqual(req.headers[launchHeader], token) ? visitor : undefined
    },
    route: () => undefined,
    close: async () => {},
  }
}

/** Compares the tokens in constant time. */
function isEqual(found: string | readonly string[] | undefined, expected: string): boolean {
  if (typeof found !== 'string') return false
  const digest = (text: string): Buffer => createHmac('sha256', 'console').update(text).digest()
  return timingSafeEqual(digest(found), digest(expected))
}
