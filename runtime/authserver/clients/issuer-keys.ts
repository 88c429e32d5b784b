/**
 * Key sets of the trusted issuers. Each issuer has its own connections and trust anchors, so an issuer that is down
 * affects only its own assertions.
 *
 * The operator configured the addresses. Because discovery could return any address, private addresses require
 * `jwksUrl`, which replaces discovery.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { rotatingSecret, type TrustedIssuerSettings } from '../../config/index.ts'
import { fetchWithToken } from '../../incoming/index.ts'
import {
  type Fetch,
  followCaBundle,
  isLoopbackHost,
  limitToOncePerMinute,
  type Log,
  makeFetch,
} from '../../net/index.ts'
import { discoverServer, isTransient, type Keys, OAuthClientError, RemoteKeys } from '../../oauth/index.ts'

interface Opened {
  readonly keys: Keys
  /** Logs at most once a minute, because untrusted clients cause the fetches. */
  readonly reportUnreadable: (error: unknown) => void
  close(): Promise<void>
}

interface IssuerKeysParts {
  readonly now: () => number
  readonly log: Log
}

export class IssuerKeys {
  readonly #parts: IssuerKeysParts
  /** One entry per combination of settings, so that changed settings take effect. */
  readonly #opened = new Map<string, Opened>()

  constructor(parts: IssuerKeysParts) {
    this.#parts = parts
  }

  /** Throws INVALID_CONFIG when a file of the issuer is unusable. */
  keysOf(issuer: TrustedIssuerSettings): Keys {
    const id = JSON.stringify(issuer)
    const opened = this.#opened.get(id) ?? open(issuer, this.#parts)
    this.#opened.set(id, opened)
    return opened.keys
  }

  /**
   * Calls `verify` with the keys of an issuer. Rejects with AUTH_UNAVAILABLE while the keys are unavailable. Returns
   * undefined, and logs the reason, when the keys cannot be read, for instance because their address is not permitted.
   */
  async verify<T>(issuer: TrustedIssuerSettings, verify: (keys: Keys) => Promise<T>): Promise<T | undefined> {
    try {
      return await verify(this.keysOf(issuer))
    } catch (error) {
      // A reload can name a file that does not exist yet.
      const isUnusable = error instanceof GatehouseError && error.code === 'INVALID_CONFIG'
      if (!(error instanceof OAuthClientError) && !isUnusable) throw error
      if (isUnusable || isTransient(error)) throw new GatehouseError('AUTH_UNAVAILABLE', { cause: error })
      this.#opened.get(JSON.stringify(issuer))?.reportUnreadable(error)
      return undefined
    }
  }

  /** Closes the key sets of all issuers that are not in the list. */
  async retain(issuers: readonly TrustedIssuerSettings[]): Promise<void> {
    const kept = new Set(issuers.map((issuer) => JSON.stringify(issuer)))
    const removed = [...this.#opened].filter(([id]) => !kept.has(id))
    for (const [id] of removed) this.#opened.delete(id)
    await Promise.all(removed.map(([, { close }]) => close()))
  }
}

function open(issuer: TrustedIssuerSettings, { now, log }: IssuerKeysParts): Opened {
  const { name, issuerUrl, jwksUrl, allowPrivateIPs, caBundlePath, jwksAuthTokenPath } = issuer
  const tls = followCaBundle(caBundlePath, `trustedIssuers[${name}].caBundlePath`, log)
  const options = { timeoutMs: 5_000, maxBytes: 262_144, maxRedirects: 0, ...(tls ? { tls } : {}) }
  const isOwn = (url: string): boolean => isLoopbackHost(new URL(url).hostname)
  const guarded = makeFetch({ ...options, guard: !allowPrivateIPs })
  const local = makeFetch({ ...options, guard: false })
  const plain: Fetch = (url, init) =>
    (isOwn(jwksUrl ?? issuerUrl) && isOwn(String(url)) ? local : guarded)(url, init)
  const fetch =
    jwksAuthTokenPath === undefined
      ? plain
      : fetchWithToken(plain, rotatingSecret(jwksAuthTokenPath, { now, log }))
  const locate = async (): Promise<string> => {
    if (jwksUrl !== undefined) return jwksUrl
    const { jwks_uri: found } = await discoverServer(issuerUrl, { fetch, need: 'jwks_uri' })
    if (found !== undefined) return found
    throw new OAuthClientError('absent', 'the issuer publishes no key set')
  }
  return {
    keys: new RemoteKeys({ fetch, now, locate }),
    reportUnreadable: limitToOncePerMinute((error: unknown) =>
      log.warn("the trusted issuer's keys cannot be read; its tokens are rejected", {
        issuer: name,
        err: error,
      }),
    ),
    close: async () => {
      await Promise.all([guarded.close(), local.close()])
    },
  }
}
