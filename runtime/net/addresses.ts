/**
 * Which network addresses a URL named by an untrusted client may lead to (SSRF defence), and what counts as loopback.
 *
 * Checks addresses only. The connector (connector.ts) applies it to literals and to every resolved address.
 * Source: RFC 6890 special-purpose registries; RFC 6052, RFC 3056 for embedded IPv4.
 */
import { BlockList, isIP, isIPv4 } from 'node:net'

const refused = new BlockList()
const v4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]
const v6: readonly (readonly [string, number])[] = [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 32],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
]
for (const [net, prefix] of v4) refused.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of v6) refused.addSubnet(net, prefix, 'ipv6')

/**
 * Which addresses a connection may go to. `public`: no special-purpose range at all. `private`: private networks, too,
 * but nothing of the machine itself or its link (loopback, metadata services, multicast).
 */
export type AddressPolicy = 'public' | 'private'

/** Ranges that stay refused where private networks are allowed. */
const local = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['100.100.100.200', 32],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  local.addSubnet(net, prefix, 'ipv4')
}
for (const [net, prefix] of [
  ['::', 128],
  ['::1', 128],
  ['fd00:ec2::254', 128],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  local.addSubnet(net, prefix, 'ipv6')
}

/** True when a guarded connection may not go to this IP address (text form, zone allowed). Not an IP: true. */
export function isRefusedAddress(address: string, policy: AddressPolicy = 'public'): boolean {
  const bare = address.split('%', 1)[0] ?? ''
  const family = isIP(bare)
  if (family === 0) return true
  const list = policy === 'public' ? refused : local
  if (family === 4) return list.check(bare, 'ipv4')
  const embedded = embeddedIPv4(bare)
  return embedded === undefined ? list.check(bare, 'ipv6') : list.check(embedded, 'ipv4')
}

/** The IPv4 address inside a mapped, compatible, NAT64 or 6to4 address. */
function embeddedIPv4(address: string): string | undefined {
  const words = expand(address)
  const [first = 0, second = 0, third = 0] = words
  if (first === 0x2002) return dotted(second, third)
  const zeros = words.slice(1, 5).every((word) => word === 0)
  const tail = dotted(words[6] ?? 0, words[7] ?? 0)
  if (first === 0x64 && second === 0xff9b && words.slice(2, 6).every((word) => word === 0)) return tail
  if (first === 0 && zeros && words[5] === 0xffff) return tail
  // IPv4-compatible (::a.b.c.d), obsolete; ::0 and ::1 are checked as IPv6.
  if (first === 0 && zeros && words[5] === 0 && (words[6] !== 0 || (words[7] ?? 0) > 1)) return tail
  return undefined
}

function dotted(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** The eight 16-bit words of a valid IPv6 address. */
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

/** True for `localhost`, names below it, 127.0.0.0/8 and ::1; brackets and a trailing dot are ignored. */
export function isLoopbackHost(host: string): boolean {
  const bare = unbracket(host).toLowerCase().replace(/\.$/, '')
  if (bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1') return true
  return isIPv4(bare) && bare.startsWith('127.')
}

/** Drops the brackets of an IPv6 literal. */
export function unbracket(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}
