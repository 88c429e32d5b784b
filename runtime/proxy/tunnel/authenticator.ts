/**
 * A tunnel's authenticator. The authenticator is replaced when the tunnel receives a different public URL, because
 * tokens are issued for that URL and clients see it.
 */
import type { Authenticator } from '../../incoming/index.ts'

export interface ExchangeableAuthenticator extends Authenticator {
  /**
   * The new authenticator applies to later requests. Requests in flight keep the previous authenticator; open event
   * streams end.
   */
  exchange(next: Authenticator): void
}

export function exchangeable(first: Authenticator): ExchangeableAuthenticator {
  let current = first
  return {
    stage: (exchange) => current.stage(exchange),
    route: (exchange) => current.route(exchange),
    authenticate: (authorization, request) => current.authenticate(authorization, request),
    challenge: (failure) => current.challenge(failure),
    sendChallenge: (exchange, error) => current.sendChallenge(exchange, error),
    close: () => current.close(),
    exchange(next) {
      const before = current
      current = next
      // Waits for active fetches. A request in flight fails only if it starts another fetch later.
      void before.close().catch(() => undefined)
    },
  }
}
