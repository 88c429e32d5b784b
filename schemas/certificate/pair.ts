/**
 * Checks whether a server or a client can use a PEM certificate with a PEM private key. Does not read the clock or
 * files.
 *
 * Does not check whether the peer trusts the certificate, or whether it has expired.
 * Source: RFC 7468; RFC 5280 section 4.2.1.12 (extended key usage).
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Violation } from '../validation/violations.ts'

export interface PemPair {
  /** The owner's certificate, then the intermediate certificates. */
  readonly cert: string
  readonly key: string
}

/** Names that messages use for the certificate and the key. */
export interface PairNames {
  readonly cert: string
  readonly key: string
  /** Peer that presents the certificate. Default: a server. A client's certificate may have any extended key usage. */
  readonly owner?: 'server' | 'client'
}

const forServers = '1.3.6.1.5.5.7.3.1'
const anyUsage = '2.5.29.37.0'
/** Minimum key size at OpenSSL's default security level. */
const minRsaBits = 2048
const certificateForm = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/**
 * Returns all reasons why the pair cannot be used; empty for a valid pair. Messages never contain any part of the key.
 */
export function pairViolations({ cert, key }: PemPair, names: PairNames): readonly Violation[] {
  const chain = certificatesIn(cert)
  const own = keyOf(key)
  return [
    ...(typeof chain === 'string' ? [{ path: names.cert, message: chain }] : []),
    ...(typeof own === 'string' ? [{ path: names.key, message: own }] : []),
    ...(typeof chain === 'string' || typeof own === 'string' ? [] : togetherViolations(chain, own, names)),
  ]
}

/** Returns the certificates (at least one) in a PEM text, or an error message. */
export function certificatesIn(pem: string): readonly X509Certificate[] | string {
  const texts = pem.match(certificateForm) ?? []
  if (texts.length === 0) return 'contains no PEM certificate'
  const chain: X509Certificate[] = []
  for (const text of texts)
    try {
      chain.push(new X509Certificate(text))
    } catch {
      return `contains a certificate that cannot be parsed, number ${chain.length + 1}`
    }
  return chain
}

/** Returns the private key, or an error message. */
function keyOf(pem: string): KeyObject | string {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    return 'contains an encrypted private key: remove the passphrase'
  if (!/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(pem)) return 'contains no PEM private key'
  try {
    const key = createPrivateKey(pem)
    const bits = key.asymmetricKeyDetails?.modulusLength ?? minRsaBits
    return bits < minRsaBits ? `contains an RSA key of ${bits} bits: it must have ${minRsaBits} or more` : key
  } catch {
    return 'contains a private key that cannot be parsed'
  }
}

function togetherViolations(
  chain: readonly X509Certificate[],
  key: KeyObject,
  names: PairNames,
): readonly Violation[] {
  const [first] = chain
  if (!first) return []
  if (!first.checkPrivateKey(key)) {
    const other = chain.findIndex((certificate) => certificate.checkPrivateKey(key))
    const message =
      other < 0
        ? `is not the key of the certificate in ${names.cert}`
        : `is the key of certificate number ${other + 1} in ${names.cert}: the ${names.owner ?? 'server'}'s own certificate must come first`
    return [{ path: names.key, message }]
  }
  if (names.owner === 'client') return []
  // Node's `keyUsage` contains the extended key usage. A certificate without this extension is valid for every use.
  const usage = first.keyUsage as readonly string[] | undefined
  if (usage === undefined || usage.includes(forServers) || usage.includes(anyUsage)) return []
  return [
    {
      path: names.cert,
      message: 'contains a certificate that is not valid for servers (extended key usage serverAuth)',
    },
  ]
}

/** True when the first certificate is valid for this host name; false for invalid PEM text. */
export function serverName(pem: string, host: string): boolean {
  const chain = certificatesIn(pem)
  return typeof chain !== 'string' && chain[0]?.checkHost(host) !== undefined
}
