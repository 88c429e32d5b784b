/**
 * Connections of one examination. They may reach URLs that the operator typed. For URLs that a server named, internal
 * addresses are refused. If the target itself is private, only metadata services and similar addresses are refused. All
 * connections use the HTTP proxy of the environment.
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
  /** PEM certificates trusted beside the system's. */
  readonly ca?: string | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** Replaces the system's resolver (tests). */
  readonly lookup?: LookupAll | undefined
}

export interface Peers {
  readonly timeoutMs: number
  readonly ca: string | undefined
  /** Asks by the rules of the URL's host. */
  ask(
    url: URL,
    question: Omit<ProbeRequest, 'timeoutMs'> & { readonly timeoutMs?: number },
  ): Promise<ProbeReply | NetworkFailure>
  /** The same connections as a fetch, for primitives of OAuth. */
  readonly fetch: Fetch
  /** The addresses that may be dialled for a URL; undefined when an HTTP proxy resolves the name. */
  addresses(url: URL): Promise<readonly LookupAddress[] | NetworkFailure | undefined>
  /** Whether an address that a server named may be dialled. */
  mayDial(url: URL, address: string): boolean
  close(): Promise<void>
}

export async function makePeers(options: PeerOptions): Promise<Peers> {
  const { target, timeoutMs, ca, proxy } = options
  const resolve = options.lookup ?? ((host, opts, done) => systemLookup(host, { ...opts, all: true }, done))
  const near = await isNear(target, resolve, timeoutMs)
  const policy = near ? 'any' : 'public'
  const base = {
    ca,
    lookup: options.lookup,
    dialTimeoutMs: timeoutMs,
    tlsTimeoutMs: timeoutMs,
    keepAlive: false,
  }
  const free = makeDispatcher({ ...base, proxy })
  const guarded = makeDispatcher({ ...base, proxy, guard: policy })
  const freeFetch = makeFetch({ ...base, proxy, timeoutMs, maxRedirects: 0, maxBytes: 262_144 })
  const guardedFetch = makeFetch({
    ...base,
    proxy,
    guard: policy,
    timeoutMs,
    maxRedirects: 0,
    maxBytes: 262_144,
  })
  const isTyped = (url: URL): boolean => url.host === target.host

  function dispatcherFor(url: URL): Dispatcher {
    return isTyped(url) ? free : guarded
  }
  return {
    timeoutMs,
    ca,
    ask: (url, question) => exchange(dispatcherFor(url), url, { timeoutMs, ...question }),
    fetch: (url, init) => (isTyped(new URL(url)) ? freeFetch : guardedFetch)(url, init),
    async addresses(url) {
      if (proxyFor(url, proxy ?? processProxyEnvironment()) !== undefined) return undefined
      return lookupAll(unbracket(url.hostname), resolve, timeoutMs)
    },
    mayDial: (url, address) => isTyped(url) || !isRefusedAddress(address, policy),
    async close() {
      await Promise.all([free.destroy(), guarded.destroy(), freeFetch.close(), guardedFetch.close()])
    },
  }
}

/** Loopback, or a name of private addresses only: what it names is a neighbour. */
async function isNear(target: URL, resolve: LookupAll, timeoutMs: number): Promise<boolean> {
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
