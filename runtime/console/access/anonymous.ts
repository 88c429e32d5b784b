/**
 * The console without a login: on this machine only, and only for whoever knows the token that it was started with.
 *
 * The token is in the fragment of the address that is printed, so that it reaches no log and no Referer, and comes back in
 * a header: cookies would be sent to every port of this host. Requests through a proxy, from other machines or under
 * another name are refused.
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
          detail: 'without a login the console answers direct requests of this machine only',
        })
      return isEqual(req.headers[launchHeader], token) ? visitor : undefined
    },
    route: () => undefined,
    close: async () => {},
  }
}

/** Takes the same time whatever the difference is. */
function isEqual(found: string | readonly string[] | undefined, expected: string): boolean {
  if (typeof found !== 'string') return false
  const digest = (text: string): Buffer => createHmac('sha256', 'console').update(text).digest()
  return timingSafeEqual(digest(found), digest(expected))
}
