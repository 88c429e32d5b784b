/**
 * Inspects stored certificates: splits bundles, checks whether a server can present a pair, and finds the issuer.
 *
 * All input is untrusted. Unparsable text counts as absent and never causes an error. Uses neither the cluster nor the
 * clock: the caller passes `now`.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'

/**
 * Returns the certificates of a PEM bundle in order, without duplicates and without any text that is not a certificate.
 */
export function splitBundle(bundle: string): readonly string[] {
  const blocks = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const found = new Map<string, string>()
  for (const block of blocks) {
    const parsed = parse(block)
    if (parsed && !found.has(parsed.fingerprint256)) found.set(parsed.fingerprint256, parsed.toString())
  }
  return [...found.values()]
}

export function joinBundle(certificates: readonly string[]): string {
  return splitBundle(certificates.join('\n')).join('')
}

/** True when both bundles contain the same certificates, in any order. */
export function sameBundle(a: string, b: string): boolean {
  const left = new Set(splitBundle(a))
  const right = new Set(splitBundle(b))
  return left.size === right.size && left.isSubsetOf(right)
}

/** Returns the certificates of the bundle that are valid at `now`. */
export function currentCertificates(bundle: string, now: Date): readonly string[] {
  return splitBundle(bundle).filter((certificate) => {
    const parsed = parse(certificate)
    return parsed !== undefined && isValidAt(parsed, now)
  })
}

/** A certificate and its key, both in PEM format. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

export type Fitness =
  | { readonly fit: true; readonly issuer: string; readonly notAfter: Date }
  | { readonly fit: false; readonly why: string }

/**
 * Checks whether `pair` can serve `names` to clients that trust `bundle`. `issuer` is the authority that signed the
 * certificate.
 */
export function checkFitness(pair: Pair, bundle: string, names: readonly string[], now: Date): Fitness {
  if (!pair.certificate || !pair.key) return { fit: false, why: 'there is no certificate yet' }
  const leaf = parse(pair.certificate)
  if (!leaf) return { fit: false, why: 'the stored certificate cannot be parsed' }
  if (!keyMatches(leaf, pair.key))
    return { fit: false, why: 'the stored key does not belong to the certificate' }
  if (!isValidAt(leaf, now)) return { fit: false, why: 'the certificate has expired or is not valid yet' }
  const missing = names.filter((name) => leaf.checkHost(name) === undefined)
  if (missing.length) return { fit: false, why: `the certificate does not cover ${missing.join(', ')}` }
  const issuer = currentCertificates(bundle, now).find((ca) => isSignedBy(ca, leaf))
  if (!issuer) return { fit: false, why: 'no trusted authority signed the certificate' }
  const ca = new X509Certificate(issuer)
  return {
    fit: true,
    issuer,
    notAfter: ca.validToDate < leaf.validToDate ? ca.validToDate : leaf.validToDate,
  }
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

function keyMatches(leaf: X509Certificate, key: string): boolean {
  try {
    return leaf.checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

function isValidAt(certificate: X509Certificate, now: Date): boolean {
  return certificate.validFromDate <= now && now < certificate.validToDate
}

function isSignedBy(ca: string, leaf: X509Certificate): boolean {
  const authority = new X509Certificate(ca)
  return authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey)
}
