/**
 * Whether a server can show a certificate with a private key, both PEM. Pure: it looks at no clock and no file.
 *
 * Whether a client trusts the certificate, and whether it has ended, is not looked at.
 * Source: RFC 7468; RFC 5280 section 4.2.1.12 (extended key usage).
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Violation } from '../validation/violations.ts'

export interface PemPair {
  /** The server's certificate, then those of the authorities between it and the root. */
  readonly cert: string
  readonly key: string
}

/** What the two are called in messages. */
export interface PairNames {
  readonly cert: string
  readonly key: string
}

const forServers = '1.3.6.1.5.5.7.3.1'
const anyUsage = '2.5.29.37.0'
/** What OpenSSL takes at its usual security level. */
const minRsaBits = 2048
const certificateForm = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Every reason why they cannot be used; empty when they can. No message holds anything of the key. */
export function pairViolations({ cert, key }: PemPair, names: PairNames): readonly Violation[] {
  const chain = certificatesIn(cert)
  const own = keyOf(key)
  return [
    ...(typeof chain === 'string' ? [{ path: names.cert, message: chain }] : []),
    ...(typeof own === 'string' ? [{ path: names.key, message: own }] : []),
    ...(typeof chain === 'string' || typeof own === 'string' ? [] : togetherViolations(chain, own, names)),
  ]
}

/** The certificates of a PEM text, at least one, or what is wrong with it. */
export function certificatesIn(pem: string): readonly X509Certificate[] | string {
  const texts = pem.match(certificateForm) ?? []
  if (texts.length === 0) return 'holds no PEM certificate'
  const chain: X509Certificate[] = []
  for (const text of texts)
    try {
      chain.push(new X509Certificate(text))
    } catch {
      return `holds a certificate that cannot be read, number ${chain.length + 1}`
    }
  return chain
}

/** The private key, or what is wrong with it. */
function keyOf(pem: string): KeyObject | string {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem))
    return 'holds an encrypted private key: give it without a passphrase'
  if (!/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(pem)) return 'holds no PEM private key'
  try {
    const key = createPrivateKey(pem)
    const bits = key.asymmetricKeyDetails?.modulusLength ?? minRsaBits
    return bits < minRsaBits ? `holds an RSA key of ${bits} bits: it must have ${minRsaBits} or more` : key
  } catch {
    return 'holds a private key that cannot be read'
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
        : `is the key of certificate number ${other + 1} in ${names.cert}: the server's own must be the first`
    return [{ path: names.key, message }]
  }
  // Node names the extended key usage so; without it a certificate is for every use.
  const usage = first.keyUsage as readonly string[] | undefined
  if (usage === undefined || usage.includes(forServers) || usage.includes(anyUsage)) return []
  return [
    {
      path: names.cert,
      message: 'holds a certificate that is not for servers (extended key usage serverAuth)',
    },
  ]
}

/** Whether the first certificate names this host; false for what is no certificate. */
export function serverName(pem: string, host: string): boolean {
  const chain = certificatesIn(pem)
  return typeof chain !== 'string' && chain[0]?.checkHost(host) !== undefined
}
