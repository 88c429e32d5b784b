/**
 * The connections that a check of a server uses. URLs on the target's host and port are always allowed. All other URLs
 * come from a server and must not resolve to internal addresses. If the target itself is private, only the addresses of
 * metadata services, and link-local, multicast and unspecified addresses, are rejected. All connections use the HTTP
 * proxy from the environment.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP } from 'node:net'
import { isRefusedAddress } from '../../../schemas/index.ts'
import {
  type Dispatcher,
  type Fetch,
  isLoopbackHost,
  type LookupAll,
  makeDispatcher,
  makeFetch,
  processProxyEnvironment,
  type ProxyEnvironment,
  proxyFor,
  unbracket,
} from '../../net/index.ts'
import { exchange, type ProbeRequest, type ProbeReply } from './exchange.ts'
import type { NetworkFailure } from '../../net/index.ts'

export interface PeerOptions {
  readonly target: URL
  readonly timeoutMs: number
  /** PEM certificates to trust in addition to the system's certificates. */
  readonly ca?: string | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** Replaces the system's resolver (for tests). */
  readonly lookup?: LookupAll | undefined
}

export interface Peers {
  readonly timeoutMs: number
  readonly ca: string | undefined
  /** Sends a request, applying the address rules for the URL's host. */
  ask(
    url: URL,
    question: Omit<ProbeRequest, 'timeoutMs'> & { readonly timeoutMs?: number },
  ): Promise<ProbeReply | NetworkFailure>
  /** A fetch function for OAuth that uses the same connections. */
  readonly fetch: Fetch
  /** Returns a URL's addresses that may be dialed. Undefined when an HTTP proxy resolves the name. */
  addresses(url: URL): Promise<readonly LookupAddress[] | NetworkFailure | undefined>
  /** True when an address from a server may be dialed. */
  mayDial(url: URL, address: string): boolean
  close(): Promise<void>
}

export async function makePeers(options: PeerOptions): Promise<Peers> {
  const { target, timeoutMs, ca, proxy } = options
  const resolve = options.lookup ?? ((host, opts, done) => systemLookup(host, { ...opts, all: true }, done))
  const isPrivate = await isPrivateTarget(target, resolve, timeoutMs)
  const policy = isPrivate ? 'any' : 'public'
  const base = {
    ca,
    lookup: options.lookup,
    dialTimeoutMs: timeoutMs,
    tlsTimeoutMs: timeoutMs,
    keepAlive: false,
  }
  const unrestricted = makeDispatcher({ ...base, proxy })
  const restricted = makeDispatcher({ ...base, proxy, guard: policy })
  const unrestrictedFetch = makeFetch({ ...base, proxy, timeoutMs, maxRedirects: 0, maxBytes: 262_144 })
  const restrictedFetch = makeFetch({
    ...base,
    proxy,
    guard: policy,
    timeoutMs,
    maxRedirects: 0,
    maxBytes: 262_144,
  })
  const isTarget = (url: URL): boolean => url.host === target.host

  function dispatcherFor(url: URL): Dispatcher {
    return isTarget(url) ? unrestricted : restricted
  }
  return {
    timeoutMs,
    ca,
    ask: (url, question) => exchange(dispatcherFor(url), url, { timeoutMs, ...question }),
    fetch: (url, init) => (isTarget(new URL(url)) ? unrestrictedFetch : restrictedFetch)(url, init),
    async addresses(url) {
      if (proxyFor(url, proxy ?? processProxyEnvironment()) !== undefined) return undefined
      return lookupAll(unbracket(url.hostname), resolve, timeoutMs)
    },
    mayDial: (url, address) => isTarget(url) || !isRefusedAddress(address, policy),
    async close() {
      await Promise.all([
        unrestricted.destroy(),
        restricted.destroy(),
        unrestrictedFetch.close(),
        restrictedFetch.close(),
      ])
    },
  }
}

/** True when the target is loopback or resolves only to private addresses. */
async function isPrivateTarget(target: URL, resolve: LookupAll, timeoutMs: number): Promise<boolean> {
  const host = unbracket(target.hostname)
  if (isLoopbackHost(host)) return true
  const found = await lookupAll(host, resolve, timeoutMs)
  return Array.isArray(found) && found.length > 0 && found.every(({ address }) => isRefusedAddress(address))
}

function lookupAll(
  host: string,
  resolve: LookupAll,
  timeoutMs: number,
): Promise<readonly LookupAddress[] | NetworkFailure> {
  const family = isIP(host)
  if (family !== 0) return Promise.resolve([{ address: host, family }])
  return new Promise((done) => {
    const timer = setTimeout(() => done({ failure: 'timeout', detail: 'the resolver' }), timeoutMs)
    resolve(host, {}, (error, addresses) => {
      clearTimeout(timer)
      if (error) done({ failure: 'dns', detail: error.code ?? 'no code' })
      else done(addresses.length === 0 ? { failure: 'dns', detail: 'no address' } : addresses.slice(0, 16))
    })
  })
}
