/**
 * Issues the hooks server's serving certificate: a new certificate authority, and one leaf that it signs.
 *
 * The authority's private key never leaves this function. Each authority signs exactly one leaf and is then discarded,
 * so no stored key can sign for another name. Rotation creates a new authority.
 * Source: RFC 5280 sections 4.1 and 4.2 (profile), RFC 9525 (names live in subjectAltName).
 */
import { randomBytes } from 'node:crypto'
import { provideReflectMetadata } from './reflect.ts'

export interface IssuedCertificate {
  /** Certificate of the authority, in PEM format. */
  readonly ca: string
  /** Leaf certificate in PEM format, signed by `ca`. */
  readonly certificate: string
  /** Private key of the leaf certificate, in PEM format (PKCS#8). */
  readonly key: string
}

export interface IssueRequest {
  /** DNS names for subjectAltName, at least one. The first name is also the common name. */
  readonly names: readonly string[]
  readonly now: Date
  /** Lifetime of both certificates, counted from `now`. */
  readonly lifetimeMs: number
}

const keys = { name: 'ECDSA', namedCurve: 'P-256' } as const
const signing = { name: 'ECDSA', hash: 'SHA-256' } as const
/** Certificates are backdated by this time, because the clocks of a cluster's nodes differ slightly. */
const skewMs = 5 * 60_000
/** Maximum length of a common name (RFC 5280, appendix A.1). */
const commonNameMax = 64

/** Creates an authority and a leaf that both expire `lifetimeMs` after `now`. */
export async function issueCertificate(request: IssueRequest): Promise<IssuedCertificate> {
  provideReflectMetadata()
  const { default: x509 } = await import('@peculiar/x509')
  const [authority, leaf] = await Promise.all([
    crypto.subtle.generateKey(keys, false, ['sign', 'verify']),
    crypto.subtle.generateKey(keys, true, ['sign', 'verify']),
  ])
  const validity = {
    notBefore: new Date(request.now.getTime() - skewMs),
    notAfter: new Date(request.now.getTime() + request.lifetimeMs),
    signingAlgorithm: signing,
  }
  // Distinct subjects let a client trust the old and the new authority at the same time.
  const authorityName = [{ CN: [`gatehouse-hooks-ca-${randomBytes(6).toString('hex')}`] }]
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serial(),
    name: authorityName,
    keys: authority,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  })
  const certificate = await x509.X509CertificateGenerator.create({
    ...validity,
    serialNumber: serial(),
    subject: [{ CN: [(request.names[0] ?? '').slice(0, commonNameMax)] }],
    issuer: authorityName,
    publicKey: leaf.publicKey,
    signingKey: authority.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        request.names.map((value) => ({ type: 'dns' as const, value })),
        false,
      ),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(leaf.publicKey),
    ],
  })
  return {
    ca: pem(ca.toString('pem')),
    certificate: pem(certificate.toString('pem')),
    key: keyPem(await crypto.subtle.exportKey('pkcs8', leaf.privateKey)),
  }
}

/** Returns 16 random bytes with the top bit clear, so that the serial is positive (RFC 5280 section 4.1.2.2). */
function serial(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01
  return bytes.toString('hex')
}

function pem(text: string): string {
  return `${text.trim()}\n`
}

function keyPem(der: ArrayBuffer): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
}
