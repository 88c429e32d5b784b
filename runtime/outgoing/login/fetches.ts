/**
 * The fetch function used by the login. URLs from the operator are unrestricted; URLs from servers (challenges,
 * metadata, redirects to other hosts) must not resolve to private addresses.
 *
 * The restriction does not apply when the target itself is private, because its authorization server is probably
 * private too.
 */
import { lookup } from 'node:dns/promises'
import type { TargetAddress } from '../../config/index.ts'
import { isRefusedAddress } from '../../../schemas/index.ts'
import { makeFetch, type ProxyEnvironment, unbracket } from '../../net/index.ts'
import type { Fetch } from '../../oauth/index.ts'

export interface LoginFetch {
  readonly fetch: Fetch
  close(): Promise<void>
}

export interface LoginFetchOptions {
  readonly target: TargetAddress
  /** The URLs that the operator configured. */
  readonly typed: readonly (string | undefined)[]
  readonly ca?: string | undefined
  readonly proxy?: ProxyEnvironment | undefined
}

export async function makeLoginFetch(options: LoginFetchOptions): Promise<LoginFetch> {
  const trusted = new Set([options.target.authority])
  for (const url of options.typed) if (url !== undefined) trusted.add(new URL(url).host)
  const free = makeFetch({ ca: options.ca, proxy: options.proxy })
  const near = await isPrivate(options.target)
  const guarded = near
    ? undefined
    : makeFetch({ guard: true, ca: options.ca, proxy: options.proxy, keepAlive: false })
  return {
    fetch: (url, init) => (guarded && !trusted.has(new URL(url).host) ? guarded : free)(url, init),
    async close() {
      await Promise.all([free.close(), guarded?.close()])
    },
  }
}

async function isPrivate(target: TargetAddress): Promise<boolean> {
  if (target.loopback) return true
  try {
    const addresses = await lookup(unbracket(new URL(target.origin).hostname), { all: true })
    return addresses.length > 0 && addresses.every(({ address }) => isRefusedAddress(address))
  } catch {
    return false
  }
}
