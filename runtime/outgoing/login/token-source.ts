/** The interface between a login at a target and the code that sends its token. */
import type { Challenge } from '../../oauth/index.ts'

/** The source of the login token: the login itself, or the process that owns it. */
export interface TokenSource {
  /** Returns undefined when the target requires no token. Throws GatehouseError when no token is available. */
  token(): string | undefined | Promise<string | undefined>
  readonly idToken: string | undefined
  concerns(status: number, challenge: Challenge | undefined): boolean
  refused(
    status: number,
    challenge: Challenge | undefined,
    url: string,
    usedToken: string | undefined,
  ): Promise<void>
}

/** A login at a target, as a user or as a client without a user. */
export interface OwnLogin extends TokenSource {
  /** Resolves when requests can be served. Rejects with OAuthClientError, GatehouseError or the signal's reason. */
  start(): Promise<void>
  /**
   * Time until which the token can be sent without calling `token` again, in Unix milliseconds; undefined for no limit.
   */
  readonly usableUntil: number | undefined
  close(): void
}
