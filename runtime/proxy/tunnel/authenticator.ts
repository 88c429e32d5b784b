/**
 * The authenticator of a tunnel, which is exchanged for another one when the tunnel comes up under another URL: the URL
 * is the resource that tokens are meant for, and clients are shown it.
 */
import type { Authenticator } from '../../incoming/index.ts'

export interface ExchangeableAuthenticator extends Authenticator {
  /** From the next request on; requests under way end with the one that they began with. */
  exchange(next: Authenticator): void
}

export function exchangeable(first: Authenticator): ExchangeableAuthenticator {
  let current = first
  return {
    stage: (exchange) => current.stage(exchange),
    route: (exchange) => current.route(exchange),
    authenticate: (authorization) => current.authenticate(authorization),
    challenge: (fault) => current.challenge(fault),
    answer: (exchange, error) => current.answer(exchange, error),
    close: () => current.close(),
    exchange(next) {
      const before = current
      current = next
      // A key set that is being fetched for a request under way fails that request only, as an outage would.
      void before.close().catch(() => undefined)
    },
  }
}
