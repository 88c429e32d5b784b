/** Loads certificates for outgoing connections from files, and reloads them when the files change. */
import { readFileSync } from 'node:fs'
import { certificatesIn } from '../../../schemas/certificate/index.ts'
import { invalidConfig } from '../../../schemas/index.ts'
import type { TlsMaterial } from './connector.ts'

export interface TlsFiles {
  readonly insecureSkipVerify: boolean
  readonly caBundlePath?: string | undefined
  readonly clientCertificatePath?: string | undefined
  readonly clientKeyPath?: string | undefined
}

/** Interval between certificate file checks, in milliseconds. */
const lookEveryMs = 2_000

/**
 * During an incomplete rotation, the previous certificates stay in use. `field` names the setting in errors. Throws
 * INVALID_CONFIG when a file cannot be used initially.
 */
export function followTls(files: TlsFiles, field: string): () => TlsMaterial {
  const { caBundlePath, clientCertificatePath, clientKeyPath, insecureSkipVerify } = files
  const read = (): TlsMaterial => ({
    insecureSkipVerify,
    ca: bundle(caBundlePath, `${field}.caBundlePath`),
    cert: pem(clientCertificatePath, `${field}.clientCertificatePath`),
    key: pem(clientKeyPath, `${field}.clientKeyPath`),
  })
  let current = read()
  let lookedAt = Date.now()
  return () => {
    if (Date.now() - lookedAt < lookEveryMs) return current
    lookedAt = Date.now()
    try {
      const now = read()
      if (JSON.stringify(now) !== JSON.stringify(current)) current = now
    } catch {
      // Keep the previous certificates.
    }
    return current
  }
}

/**
 * Follows a bundle of certification authorities. Returns undefined without a path. Throws INVALID_CONFIG when the bundle
 * cannot be used initially.
 */
export function followCaBundle(
  caBundlePath: string | undefined,
  field: string,
): (() => TlsMaterial) | undefined {
  if (caBundlePath === undefined) return undefined
  return followTls({ insecureSkipVerify: false, caBundlePath }, field)
}

/** Returns the content of a bundle. An invalid bundle would trust no server, or fail at each connection. */
function bundle(path: string | undefined, field: string): string | undefined {
  const text = pem(path, field)
  const found = text === undefined ? [] : certificatesIn(text)
  if (typeof found === 'string') throw invalidConfig(`${field}: the file ${path} ${found}`)
  return text
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
