/** Certificates of every kind that tests need, and a folder that is updated like a mounted Secret. */
import { createPrivateKey, webcrypto } from 'node:crypto'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { provideReflectMetadata } from '../../hooks/certificates/reflect.ts'

provideReflectMetadata()
const { default: x509 } = await import('@peculiar/x509')

const algorithms = {
  ecdsa: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  rsa: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
  rsa1024: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 1024,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
  ed25519: { name: 'Ed25519' },
} as const

export interface LeafOptions {
  readonly algorithm?: keyof typeof algorithms
  /** DNS names in addition to localhost. The certificate always includes the address 127.0.0.1. */
  readonly names?: readonly string[]
  /** Milliseconds until the certificate expires. Negative: it has expired. Default: 30 days. */
  readonly endsInMs?: number
  readonly usage?: 'serverAuth' | 'clientAuth'
}

export interface Leaf {
  readonly cert: string
  readonly key: string
  /** Serial number in upper-case hex, as a TLS client reports it. */
  readonly serialNumber: string
}

export interface Authority {
  readonly ca: string
  leaf(options?: LeafOptions): Promise<Leaf>
}

const dayMs = 86_400_000
let serials = 0

function serialNumber(): string {
  return `4A${(++serials).toString(16).padStart(6, '0')}`.toUpperCase()
}

function validity(endsInMs = 30 * dayMs) {
  const now = Date.now()
  return { notBefore: new Date(Math.min(now, now + endsInMs) - dayMs), notAfter: new Date(now + endsInMs) }
}

export async function makeAuthority(endsInMs?: number): Promise<Authority> {
  const signing = algorithms.ecdsa
  const keys = await webcrypto.subtle.generateKey(signing, true, ['sign', 'verify'])
  const name = `CN=Test authority ${++serials}`
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity(endsInMs),
    serialNumber: serialNumber(),
    name,
    keys: keys as never,
    signingAlgorithm: signing,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  })
  return {
    ca: `${own.toString('pem')}\n`,
    async leaf({ algorithm = 'ecdsa', names = [], endsInMs, usage = 'serverAuth' } = {}) {
      const chosen = algorithms[algorithm]
      const leafKeys = (await webcrypto.subtle.generateKey(chosen, true, [
        'sign',
        'verify',
      ])) as webcrypto.CryptoKeyPair
      const serial = serialNumber()
      const certificate = await x509.X509CertificateGenerator.create({
        ...validity(endsInMs),
        serialNumber: serial,
        subject: 'CN=localhost',
        issuer: name,
        publicKey: leafKeys.publicKey,
        signingKey: keys.privateKey as never,
        signingAlgorithm: signing,
        extensions: [
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[usage]]),
          new x509.SubjectAlternativeNameExtension([
            { type: 'ip', value: '127.0.0.1' },
            ...['localhost', ...names].map((value) => ({ type: 'dns' as const, value })),
          ]),
        ],
      })
      const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', leafKeys.privateKey))
      return {
        cert: `${certificate.toString('pem')}\n`,
        key: createPrivateKey({ key, format: 'der', type: 'pkcs8' })
          .export({ type: 'pkcs8', format: 'pem' })
          .toString(),
        serialNumber: serial,
      }
    },
  }
}

export interface MountedSecret {
  readonly certFile: string
  readonly keyFile: string
  readonly caFile: string
  /** Replaces all files at once by changing a link, like the kubelet. */
  write(files: Readonly<Record<string, string>>): void
}

/** Creates a folder like the kubelet: files are links through `..data`. */
export function mountSecret(files: Readonly<Record<string, string>>): MountedSecret {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-secret-'))
  let version = 0
  function write(content: Readonly<Record<string, string>>): void {
    const next = `..${++version}`
    mkdirSync(join(folder, next))
    for (const [name, text] of Object.entries(content)) {
      writeFileSync(join(folder, next, name), text)
      if (version === 1) symlinkSync(join('..data', name), join(folder, name))
    }
    symlinkSync(next, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    if (version > 1) rmSync(join(folder, `..${version - 1}`), { recursive: true })
  }
  write(files)
  return {
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    caFile: join(folder, 'ca.crt'),
    write,
  }
}

/** Returns a certificate pair under the keys of a Secret of type kubernetes.io/tls. */
export function secretOf({ cert, key }: Pick<Leaf, 'cert' | 'key'>, ca?: string): Record<string, string> {
  return { 'tls.crt': cert, 'tls.key': key, ...(ca !== undefined && { 'ca.crt': ca }) }
}
