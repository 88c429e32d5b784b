/**
 * Which remote addresses a resource may name.
 *
 * Always refused: loopback, link-local, multicast, unspecified and metadata addresses, and the API server's own names.
 * Refused unless private endpoints are allowed: private ranges and names inside the cluster. No name is looked up here:
 * the dialler checks the address again when it connects.
 */
import { BlockList, isIP } from 'node:net'

const never = new BlockList()
never.addSubnet('0.0.0.0', 8)
never.addSubnet('127.0.0.0', 8)
never.addSubnet('169.254.0.0', 16)
never.addSubnet('224.0.0.0', 4)
never.addSubnet('240.0.0.0', 4)
never.addAddress('::', 'ipv6')
never.addAddress('::1', 'ipv6')
never.addSubnet('fe80::', 10, 'ipv6')
never.addSubnet('ff00::', 8, 'ipv6')
// Metadata services of clouds that lie within private ranges.
never.addAddress('fd00:ec2::254', 'ipv6')
never.addAddress('100.100.100.200')

const privateRanges = new BlockList()
privateRanges.addSubnet('10.0.0.0', 8)
privateRanges.addSubnet('172.16.0.0', 12)
privateRanges.addSubnet('192.168.0.0', 16)
privateRanges.addSubnet('100.64.0.0', 10)
privateRanges.addSubnet('fc00::', 7, 'ipv6')

const neverNames = ['localhost', 'kubernetes', 'kubernetes.default', 'metadata.google.internal'] as const
const clusterSuffixes = ['.svc', '.cluster.local'] as const

/** Why the address is refused, as the end of a sentence; undefined when it is fine. */
export function addressFailure(
  url: string,
  allowPrivateEndpoint: boolean,
  allowLoopback = false,
): string | undefined {
  if (!URL.canParse(url)) return 'is not a URL'
  const { protocol, hostname, username, password } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') return 'must start with http:// or https://'
  if (username !== '' || password !== '') return 'must not carry credentials'
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (allowLoopback && isLoopback(host)) return undefined
  const version = isIP(host)
  if (version !== 0) return ipFailure(host, version === 6 ? 'ipv6' : 'ipv4', allowPrivateEndpoint)
  return nameFailure(host, allowPrivateEndpoint)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function ipFailure(host: string, family: 'ipv4' | 'ipv6', allowPrivate: boolean): string | undefined {
  // A BlockList also finds IPv4-mapped IPv6 addresses.
  if (never.check(host, family))
    return 'names a loopback, link-local, multicast or metadata address, which is never allowed'
  if (!allowPrivate && privateRanges.check(host, family)) {
    return 'names a private address; set allowPrivateEndpoint to permit it'
  }
  return undefined
}

function nameFailure(host: string, allowPrivate: boolean): string | undefined {
  const bare = host.replace(/\.svc(\.cluster\.local)?$/, '')
  if (neverNames.some((name) => bare === name || host === name || host.endsWith(`.${name}`))) {
    return 'names the local host, the Kubernetes API or a metadata service, which is never allowed'
  }
  if (!allowPrivate && clusterSuffixes.some((suffix) => host.endsWith(suffix))) {
    return 'names a service inside the cluster; set allowPrivateEndpoint to permit it'
  }
  return undefined
}
