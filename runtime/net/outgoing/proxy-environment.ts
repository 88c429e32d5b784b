/**
 * Selects the HTTP proxy for an outgoing request.
 *
 * Requests to loopback and local names (single labels, cluster Services) never use a proxy. NO_PROXY entries are
 * separated by commas or spaces: `*`, a domain (matches the domain and its subdomains; a leading dot or `*.` matches
 * subdomains only), an IP address, or a CIDR block. Every kind of entry except a CIDR block may have a `:port`.
 */
import { BlockList, isIP } from 'node:net'
import { isLocalName, isSwitchedOn } from '../../../schemas/index.ts'
import { isLoopbackHost, unbracket } from '../addresses.ts'

export interface ProxyEnvironment {
  /** Value of HTTP_PROXY, for http URLs. */
  readonly http?: string | undefined
  /** Value of HTTPS_PROXY, for https URLs. */
  readonly https?: string | undefined
  /** Value of NO_PROXY. */
  readonly except?: string | undefined
  /**
   * Value of GATEHOUSE_PROXY_RESOLVES_NAMES, which lets the proxy resolve names that other servers supplied and that
   * this process cannot resolve.
   */
  readonly resolvesNames?: boolean | undefined
}

/** Settings without a proxy, for the API server of the cluster that this process runs in. */
export const directOnly: ProxyEnvironment = {}

/**
 * Reads the variables. The lowercase name takes precedence, and an empty value is treated as unset. Throws
 * INVALID_CONFIG if GATEHOUSE_PROXY_RESOLVES_NAMES is not a Boolean.
 */
export function proxyEnvironment(env: Readonly<Record<string, string | undefined>>): ProxyEnvironment {
  const either = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined
  return {
    http: either('HTTP_PROXY'),
    https: either('HTTPS_PROXY'),
    except: either('NO_PROXY'),
    resolvesNames: isSwitchedOn(env, 'GATEHOUSE_PROXY_RESOLVES_NAMES'),
  }
}

/** Default for every outgoing connection, which prevents code from bypassing the proxy by mistake. */
export function processProxyEnvironment(): ProxyEnvironment {
  return proxyEnvironment(process.env)
}

/** Returns the proxy URL for a request to this origin, or undefined for a direct connection. */
export function proxyFor(origin: string | URL, environment: ProxyEnvironment): string | undefined {
  const url = typeof origin === 'string' ? new URL(origin) : origin
  const proxy = url.protocol === 'https:' ? environment.https : environment.http
  if (proxy === undefined || proxy === '') return undefined
  const host = unbracket(url.hostname).toLowerCase().replace(/\.$/, '')
  if (isLoopbackHost(host) || isLocalName(host)) return undefined
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const entries = (environment.except ?? '').split(/[,\s]+/).filter((entry) => entry !== '')
  if (entries.some((entry) => matches(entry.toLowerCase(), host, port))) return undefined
  return proxy.includes('://') ? proxy : `http://${proxy}`
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true
  if (entry.includes('/')) return inBlock(entry, host)
  const { name, entryPort } = splitPort(entry)
  if (entryPort !== undefined && entryPort !== port) return false
  if (isIP(name) !== 0 || isIP(host) !== 0) return canonicalAddress(name) === host
  const below = name.replace(/^\*?\./, '')
  if (host.endsWith(`.${below}`)) return true
  return below === name && host === name
}

/** Converts an IPv6 address to the form used in URLs; returns other strings unchanged. */
function canonicalAddress(address: string): string {
  return isIP(address) === 6 ? unbracket(new URL(`http://[${address}]`).hostname) : address
}

function splitPort(entry: string): { name: string; entryPort: string | undefined } {
  if (isIP(entry) === 6) return { name: entry, entryPort: undefined }
  const match = /^(.*?)(?::(\d+))?$/.exec(entry)
  return { name: unbracket(match?.[1] ?? entry), entryPort: match?.[2] }
}

function inBlock(entry: string, host: string): boolean {
  const [net = '', prefix = ''] = entry.split('/')
  const family = isIP(net)
  if (family === 0 || isIP(host) !== family || !/^\d{1,3}$/.test(prefix)) return false
  if (Number(prefix) > (family === 4 ? 32 : 128)) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const block = new BlockList()
  block.addSubnet(net, Number(prefix), type)
  return block.check(host, type)
}
