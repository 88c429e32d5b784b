/** Fetch functions for one issuer: for its key set, and for its introspection endpoint. */
import { rotatingSecret } from '../config/index.ts'
import { isLoopbackHost, type Log, makeFetch, type ProxyEnvironment } from '../net/index.ts'
import type { Secret } from '../observe/index.ts'
import type { Fetch } from '../oauth/index.ts'
import type { OidcConfig } from './config.ts'

export interface IncomingFetches {
  readonly keys: Fetch
  readonly introspection: Fetch
  close(): Promise<void>
}

export interface FetchParts {
  readonly now: () => number
  readonly proxy: ProxyEnvironment | undefined
  readonly log: Log
}

/**
 * Creates the fetch functions that the configuration allows. Loopback hosts in the configuration are trusted; other
 * private addresses must be allowed by their setting.
 */
export function makeFetches(config: OidcConfig, { proxy, now, log }: FetchParts): IncomingFetches {
  const operatorUrls = [config.issuer, config.jwksUrl, config.introspectionUrl]
  const shared = { tls: config.tls, allowHttp: config.insecureAllowHttp, proxy, operatorUrls }
  const keys = makeFetch({
    ...shared,
    guard: !config.jwksAllowPrivateIp && !isLocal(config.jwksUrl ?? config.issuer),
    timeoutMs: 5_000,
  })
  const introspection = makeFetch({
    ...shared,
    guard: !config.protectedResourceAllowPrivateIp && !isLocal(config.introspectionUrl),
    timeoutMs: 10_000,
    maxBytes: 65_536,
  })
  return {
    keys:
      config.jwksAuthTokenPath === undefined
        ? keys
        : fetchWithToken(keys, rotatingSecret(config.jwksAuthTokenPath, { now, log })),
    introspection,
    close: async () => {
      await Promise.all([keys.close(), introspection.close()])
    },
  }
}

/** Sends the token, for key sets that require one, such as the key set of an API server. */
export function fetchWithToken(fetchKeys: Fetch, token: () => Secret): Fetch {
  return (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${token().reveal()}`)
    return fetchKeys(url, { ...init, headers })
  }
}

function isLocal(url: string | undefined): boolean {
  return url !== undefined && isLoopbackHost(new URL(url).hostname)
}
