/**
 * The authenticator of a tunnel, which is exchanged for another one when the tunnel comes up under another URL: the URL
 * is the resource that tokens are meant for, and clients are shown it.
 */
import type { Authenticator } from '../../incoming/index.ts'

export interface ExchangeableAuthenticator extends Authenticator {
  /** From the next request on; requests in flight end with the one that they began with. */
  exchange(next: Authenticator): void
}

export function exchangeable(first: Authenticator): ExchangeableAuthenticator {
  let current = first
  return {
    stage: (exchange) => current.stage(exchange),
    route: (exchange) => current.route(exchange),
    authenticate: (authorization) => current.authenticate(authorization),
    challenge: (failure) => current.challenge(failure),
    response: (exchange, error) => current.response(exchange, error),
    close: () => current.close(),
    exchange(next) {
      const before = current
      current = next
      // A key set that is being fetched for a request in flight fails that request only, as an outage would.
      void before.close().catch(() => undefined)
    },
  }
}
