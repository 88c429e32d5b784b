/** Loads certificates for outgoing connections from files, and reloads them when the files change. */
import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { certificatesIn } from '../../../schemas/certificate/index.ts'
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import type { Log } from '../log.ts'
import type { TlsMaterial } from './connector.ts'

/** Receives a warning when changed files are unusable. */
type Reporter = Pick<Log, 'warn'>

export interface TlsFiles {
  readonly insecureSkipVerify: boolean
  /** PEM certificates to trust, instead of `caBundlePath`. */
  readonly ca?: string | undefined
  readonly caBundlePath?: string | undefined
  readonly clientCertificatePath?: string | undefined
  readonly clientKeyPath?: string | undefined
}

/** Interval between checks of the certificate files, in milliseconds. */
const lookEveryMs = 2_000

/** Watches the files of a connection. `field` is the object that contains the paths; errors name it. See `follow`. */
export function followTls(files: TlsFiles, field: string, log: Reporter): () => TlsMaterial {
  const { ca, caBundlePath, clientCertificatePath, clientKeyPath, insecureSkipVerify } = files
  return follow(() => {
    const cert = certificates(clientCertificatePath, `${field}.clientCertificatePath`)
    const key = privateKey(clientKeyPath, `${field}.clientKeyPath`)
    if (cert !== undefined && key !== undefined && !isPair(cert, key))
      throw invalidConfig(`${field}.clientKeyPath: the key does not belong to the certificate`)
    return { insecureSkipVerify, ca: ca ?? certificates(caBundlePath, `${field}.caBundlePath`), cert, key }
  }, log)
}

/**
 * Watches a CA bundle. `setting` is the flag or field that contains the path; errors name it. Returns undefined without
 * a path. See `follow`.
 */
export function followCaBundle(
  path: string | undefined,
  setting: string,
  log: Reporter,
): (() => TlsMaterial) | undefined {
  if (path === undefined) return undefined
  return follow(() => ({ insecureSkipVerify: false, ca: certificates(path, setting) }), log)
}

/**
 * Watches the files. While changed files are unusable, for example during a rotation, the previous certificates stay in
 * use. Logs each reason once. Throws INVALID_CONFIG if a file is unusable at startup.
 */
function follow(read: () => TlsMaterial, log: Reporter): () => TlsMaterial {
  let current = read()
  let lookedAt = Date.now()
  let problem: string | undefined
  return () => {
    if (Date.now() - lookedAt < lookEveryMs) return current
    lookedAt = Date.now()
    try {
      const now = read()
      if (JSON.stringify(now) !== JSON.stringify(current)) current = now
      problem = undefined
    } catch (error) {
      const reason = error instanceof GatehouseError ? error.message : 'unknown error'
      if (reason !== problem) log.warn('certificates not reloaded; the previous ones stay in use', { reason })
      problem = reason
    }
    return current
  }
}

/** During a rotation, only one of the two files may be new. */
function isPair(cert: string, key: string): boolean {
  const chain = certificatesIn(cert)
  return typeof chain !== 'string' && chain[0]?.checkPrivateKey(createPrivateKey(key)) === true
}

/**
 * Returns the text of a file with certificates. With an invalid bundle, no server would be trusted, or every connection
 * would fail.
 */
function certificates(path: string | undefined, field: string): string | undefined {
  const text = pem(path, field)
  const found = text === undefined ? [] : certificatesIn(text)
  if (typeof found === 'string') throw invalidConfig(`${field}: the file ${path} ${found}`)
  return text
}

function privateKey(path: string | undefined, field: string): string | undefined {
  const text = pem(path, field)
  try {
    if (text !== undefined) createPrivateKey(text)
    return text
  } catch {
    // Omits the cause, which may quote the key.
    throw invalidConfig(
      `${field}: the file ${path} contains no private key that can be read without a passphrase`,
    )
  }
}

function pem(path: string | undefined, field: string): string | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalidConfig(`${field}: the file ${path} cannot be read`, cause)
  }
  if (text.includes('-----BEGIN ')) return text
  throw invalidConfig(`${field}: the file ${path} contains no PEM`)
}
