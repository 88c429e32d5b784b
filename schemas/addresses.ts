/**
 * Decides which network addresses a URL may point to. Admission applies the rules to the URL text; the connector
 * applies them to the address that it dials.
 *
 * This module resolves no host names. The connector checks the address behind an accepted name again when it dials.
 * Source: RFC 6890 special-purpose registries; RFC 6052 and RFC 3056 for embedded IPv4; metadata services of clouds.
 */
import { BlockList, isIP, isIPv4 } from 'node:net'

/**
 * `any` includes loopback and private networks. `private` excludes loopback. `public` excludes all special-purpose
 * ranges. All three policies reject link-local, multicast, unspecified and metadata addresses.
 */
export type AddressPolicy = 'any' | 'private' | 'public'

/** `operator` allows everything except link-local and metadata addresses, for addresses that an operator configured. */
export type DialPolicy = AddressPolicy | 'operator'

/** Returns the address policy that the `allowPrivateEndpoint` field of an MCPServerEntry or MCPRemoteProxy selects. */
export function endpointPolicy(allowPrivateEndpoint: boolean): AddressPolicy {
  return allowPrivateEndpoint ? 'private' : 'public'
}

type Range = readonly [network: string, prefix: number]

/** Link-local addresses, and cloud metadata services in other ranges. */
const metadataRanges = blockList(
  [
    ['100.100.100.200', 32],
    ['168.63.129.16', 32],
    ['169.254.0.0', 16],
    ['192.0.0.192', 32],
  ],
  [
    ['fd00:ec2::23', 128],
    ['fd00:ec2::254', 128],
    ['fd20:ce::254', 128],
    ['fe80::', 10],
  ],
)

/** Multicast, unspecified and reserved ranges. */
const neverRanges = blockList(
  [
    ['0.0.0.0', 8],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ],
  [
    ['::', 128],
    ['ff00::', 8],
  ],
)

const loopbackRanges = blockList([['127.0.0.0', 8]], [['::1', 128]])

const privateRanges = blockList(
  [
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
  ],
  [['fc00::', 7]],
)

/** Other special-purpose ranges, which are not routed on the public network. */
const otherSpecialRanges = blockList(
  [
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
  ],
  [
    ['64:ff9b:1::', 48],
    ['100::', 64],
    ['2001::', 32],
    ['2001:db8::', 32],
    ['3fff::', 20],
    ['fec0::', 10],
  ],
)

type Level = 'metadata' | 'never' | 'loopback' | 'private' | 'special' | 'public'

const refusedBy: Readonly<Record<DialPolicy, readonly Level[]>> = {
  operator: ['metadata'],
  any: ['metadata', 'never'],
  private: ['metadata', 'never', 'loopback'],
  public: ['metadata', 'never', 'loopback', 'private', 'special'],
}

/**
 * True when the policy forbids connections to this IP address (in text form; a zone is allowed). Also true when the
 * text is not an IP address.
 */
export function isRefusedAddress(address: string, policy: DialPolicy = 'public'): boolean {
  const level = levelOf(address)
  return level === undefined || refusedBy[policy].includes(level)
}

/** Returns the IP version, or undefined when the text is not an IP address. */
function levelOf(address: string): Level | undefined {
  const bare = address.split('%', 1)[0] ?? ''
  const family = isIP(bare)
  if (family === 0) return undefined
  const embedded = family === 6 ? embeddedIPv4(bare) : undefined
  const subject = embedded ?? bare
  const type = isIPv4(subject) ? 'ipv4' : 'ipv6'
  if (metadataRanges.check(subject, type)) return 'metadata'
  if (neverRanges.check(subject, type)) return 'never'
  if (loopbackRanges.check(subject, type)) return 'loopback'
  if (privateRanges.check(subject, type)) return 'private'
  const isSpecial =
    otherSpecialRanges.check(subject, type) ||
    (embedded !== undefined && otherSpecialRanges.check(bare, 'ipv6'))
  return isSpecial ? 'special' : 'public'
}

const localNames = ['localhost'] as const
const metadataNames = [
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'instance-data.ec2.internal',
] as const
/** Names of the cluster's API server. An operator may use the API server as an issuer, but not as an MCP server. */
const apiServerNames = ['kubernetes', 'kubernetes.default'] as const
const clusterSuffixes = ['.svc', '.cluster.local'] as const
/** A Service under any cluster domain: `name.namespace.svc.example`. */
const servicePattern = /^[^.]+\.[^.]+\.svc(?:\.|$)/
const localSuffixes = [...clusterSuffixes, '.local', '.localhost'] as const

/**
 * True for names that only the local resolver can resolve: single labels, `localhost`, names below `.local`, and
 * cluster Services. Connections to such names never use an HTTP proxy. False for IP addresses.
 */
export function isLocalName(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  if (levelOf(host.replace(/^\[|\]$/g, '')) !== undefined) return false
  return !host.includes('.') || servicePattern.test(host) || localSuffixes.some((end) => host.endsWith(end))
}

/** Returns the reason why the policy forbids the URL, as the end of a sentence, or undefined when it is allowed. */
export function addressViolation(url: string, policy: DialPolicy): string | undefined {
  const parsed = URL.parse(url)
  if (!parsed) return 'is not a URL'
  const { protocol, hostname, username, password } = parsed
  if (!isHttp(protocol)) return 'must start with http:// or https://'
  if (username !== '' || password !== '') return 'must not contain credentials'
  return hostViolation(hostname, policy)
}

function isHttp(protocol: string): boolean {
  return protocol === 'http:' || protocol === 'https:'
}

/** `hostname` comes from a parsed http URL. */
function hostViolation(hostname: string, policy: DialPolicy): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const level = levelOf(host)
  return level === undefined ? nameViolation(host, policy) : levelViolation(level, policy)
}

/**
 * Returns the reason why an operator's service, such as a token endpoint or a collector, may not use this URL or
 * `host:port`. Returns undefined when the address is allowed. Rejects only metadata addresses, link-local addresses and
 * malformed URLs.
 */
export function serviceViolation(endpoint: string): string | undefined {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(endpoint) ? endpoint : `https://${endpoint}`
  const parsed = URL.parse(url)
  if (!parsed) return /^https?:/i.test(endpoint) ? 'is not a URL' : undefined
  const { protocol, hostname, port } = parsed
  if (isHttp(protocol)) return hostViolation(hostname, 'operator')
  return addressViolation(`https://${hostname}${port === '' ? '' : `:${port}`}`, 'operator')
}

const permit = 'set allowPrivateEndpoint to allow private addresses'

function levelViolation(level: Level, policy: DialPolicy): string | undefined {
  if (!refusedBy[policy].includes(level)) return undefined
  if (level === 'metadata' || level === 'never')
    return 'points to a link-local, multicast, unspecified or metadata address, which is never allowed'
  if (level === 'loopback') return 'points to a loopback address, which is never allowed'
  // Accepts documentation and test ranges, which are not routed. A connection to such a range fails on its own.
  return level === 'private' ? `points to a private address; ${permit}` : undefined
}

function nameViolation(host: string, policy: DialPolicy): string | undefined {
  const bare = host.replace(/\.svc(\.cluster\.local)?$/, '')
  const isOneOf = (names: readonly string[]): boolean =>
    names.some((name) => bare === name || host === name || host.endsWith(`.${name}`))
  const never = policy === 'operator' ? metadataNames : [...metadataNames, ...apiServerNames]
  if (isOneOf(never)) return 'points to the Kubernetes API or a metadata service, which is never allowed'
  if ((policy === 'private' || policy === 'public') && isOneOf(localNames))
    return 'points to the local host, which is never allowed'
  if (policy === 'public' && clusterSuffixes.some((suffix) => host.endsWith(suffix))) {
    return `points to a service inside the cluster; ${permit}`
  }
  return undefined
}

function blockList(v4: readonly Range[], v6: readonly Range[]): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of v4) list.addSubnet(network, prefix, 'ipv4')
  for (const [network, prefix] of v6) list.addSubnet(network, prefix, 'ipv6')
  return list
}

/** Returns the IPv4 address that a mapped, compatible, translated, NAT64 (both prefixes) or 6to4 address contains. */
function embeddedIPv4(address: string): string | undefined {
  const words = expand(address)
  const [first = 0, second = 0, third = 0] = words
  if (first === 0x2002) return dotted(second, third)
  const zeros = words.slice(1, 5).every((word) => word === 0)
  const tail = dotted(words[6] ?? 0, words[7] ?? 0)
  const isNat64 = first === 0x64 && second === 0xff9b && third <= 1
  if (isNat64 && words.slice(3, 6).every((word) => word === 0)) return tail
  // IPv4-translated (::ffff:0:a.b.c.d).
  const isTranslated = words[4] === 0xffff && words[5] === 0
  if (isTranslated && words.slice(0, 4).every((word) => word === 0)) return tail
  if (first === 0 && zeros && words[5] === 0xffff) return tail
  // IPv4-compatible (::a.b.c.d), obsolete. The IPv6 checks cover ::0 and ::1.
  if (first === 0 && zeros && words[5] === 0 && (words[6] !== 0 || (words[7] ?? 0) > 1)) return tail
  return undefined
}

function dotted(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** Returns the eight 16-bit words of a valid IPv6 address. */
function expand(address: string): number[] {
  let text = address
  const lastColon = text.lastIndexOf(':')
  const last = text.slice(lastColon + 1)
  if (isIPv4(last)) {
    const [a = 0, b = 0, c = 0, d = 0] = last.split('.').map(Number)
    text = `${text.slice(0, lastColon + 1)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  }
  const [head = '', tail] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const fill = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array.from({ length: fill }, () => '0'), ...right].map((word) =>
    Number.parseInt(word, 16),
  )
}
