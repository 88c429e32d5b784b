/** The files of --tls-cert-file and --tls-key-file: both or neither, and a valid pair. */
import { type CertificateFiles, checkCertificate } from '../../../schemas/certificate/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

export interface ServingFlags {
  readonly tlsCertFile?: string | undefined
  readonly tlsKeyFile?: string | undefined
}

/** Returns undefined without the flags. Throws INVALID_CONFIG with one line per problem. */
export function servingFiles({ tlsCertFile, tlsKeyFile }: ServingFlags): CertificateFiles | undefined {
  if (tlsCertFile === undefined && tlsKeyFile === undefined) return undefined
  if (!tlsCertFile || !tlsKeyFile) {
    const detail = '--tls-cert-file and --tls-key-file must be given together'
    throw new GatehouseError('INVALID_CONFIG', { detail })
  }
  const files = { certFile: tlsCertFile, keyFile: tlsKeyFile }
  checkCertificate(files)
  return files
}
