/**
 * Fetch functions of the authorization server: one function per upstream provider, and guarded functions for clients'
 * addresses.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import { type Fetch, isLoopbackHost, type Log, makeFetch } from '../../net/index.ts'
import { followUpstreamTls } from '../upstream/upstream-client.ts'

interface FetchParts {
  /** Replaces the fetch functions of all upstream providers. */
  readonly fetch?: Fetch
  /** Fetch function for clients' documents and keys. */
  readonly documentFetch?: Fetch
}

export type AuthServerFetches = ReturnType<typeof makeFetches>

/** Creates the fetch functions for providers and documents. `close` aborts all requests in progress. */
export function makeFetches(config: AuthServerConfig, parts: FetchParts, log: Log) {
  const closing = new AbortController()
  const plain = findHttpUpstreams(config)
  if (plain.length > 0) {
    log.warn('upstream endpoints use plain http: secrets and tokens are sent in plain text', {
      upstreams: plain,
    })
  }
  const upstreams = upstreamFetches(config, plain.length > 0, log)
  const documents = untrustedFetch(10_240, config)
  const keySets = untrustedFetch(65_536, config)
  const abortable =
    (fetch: Fetch | undefined): Fetch =>
    async (url, init) => {
      if (!fetch) throw new GatehouseError('INTERNAL')
      const signal = init?.signal ? AbortSignal.any([init.signal, closing.signal]) : closing.signal
      return fetch(url, { ...init, signal })
    }
  return {
    upstream: ({ name }: AuthServerConfig['upstreams'][number]): Fetch =>
      abortable(parts.fetch ?? upstreams.get(name)),
    document: abortable(parts.documentFetch ?? documents),
    /** Fetch function for clients' keys, which are larger than documents. */
    keySet: abortable(parts.documentFetch ?? keySets),
    async close() {
      closing.abort(new Error('the authorization server is shutting down'))
      await Promise.all([...upstreams.values(), documents, keySets].map((fetch) => fetch.close()))
    },
  }
}

/**
 * Returns a guarded fetch for addresses that clients choose. With `allowLoopback`, loopback addresses are allowed as
 * well.
 */
function untrustedFetch(maxBytes: number, { cimd }: AuthServerConfig): ReturnType<typeof makeFetch> {
  const options = { timeoutMs: 5_000, maxBytes, maxRedirects: 0, keepAlive: false }
  const guarded = makeFetch({ ...options, guard: true })
  if (!cimd?.allowLoopback) return guarded
  const local = makeFetch({ ...options, guard: false })
  const fetch: Fetch = (url, init) => (isLoopbackHost(new URL(url).hostname) ? local : guarded)(url, init)
  const close = async (): Promise<void> => {
    await Promise.all([guarded.close(), local.close()])
  }
  return Object.assign(fetch, { close })
}

/** Returns one fetch function per upstream, with its certificates. Throws INVALID_CONFIG for a broken file. */
function upstreamFetches({ upstreams }: AuthServerConfig, allowHttp: boolean, log: Log) {
  return new Map(
    upstreams.map((upstream, index) => {
      const tls = followUpstreamTls(upstream, index, log)
      return [upstream.name, makeFetch({ timeoutMs: 30_000, allowHttp, ...(tls ? { tls } : {}) })]
    }),
  )
}

/**
 * Returns the providers with http endpoints, which docs/reference/specification/external-auth.md allows for
 * oauth2Config and userInfo.
 */
function findHttpUpstreams({ upstreams }: AuthServerConfig): readonly string[] {
  const isPlain = (url: string | undefined): boolean => {
    if (url === undefined) return false
    const { protocol, hostname } = new URL(url)
    return protocol === 'http:' && !isLoopbackHost(hostname)
  }
  return upstreams
    .filter((upstream) =>
      upstream.type === 'oidc'
        ? isPlain(upstream.userInfoOverride?.endpointUrl)
        : isPlain(upstream.tokenEndpoint) || isPlain(upstream.userInfo?.endpointUrl),
    )
    .map(({ name }) => name)
}
