/** The files of --tls-cert-file, --tls-key-file and --tls-client-ca-file: a valid pair, and an authority for clients. */
import { type CertificateFiles, checkCertificate } from '../../../schemas/certificate/index.ts'
import { invalidConfig } from '../../../schemas/index.ts'

export interface ServingFlags {
  readonly tlsCertFile?: string | undefined
  readonly tlsKeyFile?: string | undefined
  readonly tlsClientCaFile?: string | undefined
}

/** Returns undefined without the flags. Throws INVALID_CONFIG with one line per problem. */
export function servingFiles({
  tlsCertFile,
  tlsKeyFile,
  tlsClientCaFile,
}: ServingFlags): CertificateFiles | undefined {
  if (tlsCertFile === undefined && tlsKeyFile === undefined) {
    if (tlsClientCaFile === undefined) return undefined
    throw invalidConfig('--tls-client-ca-file requires --tls-cert-file and --tls-key-file')
  }
  if (!tlsCertFile || !tlsKeyFile)
    throw invalidConfig('--tls-cert-file and --tls-key-file must be given together')
  const files = { certFile: tlsCertFile, keyFile: tlsKeyFile, clientCaFile: tlsClientCaFile }
  checkCertificate(files)
  return files
}
