/**
 * The seam to whatever authenticates the proxy to its target: a fixed bearer token, an OAuth login, token exchange.
 */
import type { ProxyExchange } from './exchange.ts'

export interface Credential {
  /** True when the proxy holds the credential itself: the target's challenges are not shown to clients then. */
  readonly ownsAuthorization: boolean
  /** Lower-case names of the headers that `apply` sets; a client's headers of these names are never forwarded. */
  readonly headerNames: readonly string[]
  /** Sets `exchange.credential`. Throws GatehouseError when there is none to be had; the request is not sent then. */
  apply(exchange: ProxyExchange): void | Promise<void>
  /** True when an answer with this status (401, 403) and challenge is about this credential. */
  concerns(status: number, challenge: string | undefined): boolean
  /**
   * The target refused the credential: gets another one and sets `exchange.credential` anew; the request is then sent
   * once more. Throws GatehouseError when nothing better is to be had.
   */
  renew(exchange: ProxyExchange, status: number, challenge: string | undefined): Promise<void>
}
