/**
 * The client certificate for a remote MCP server: a Secret of type kubernetes.io/tls, mounted as a directory. The runtime
 * reloads its files, so a rotation does not replace the pods.
 */
import type { SecretRef } from '../../schemas/index.ts'
import type { SyncFailure } from '../sync/conditions.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'

const directory = '/etc/gatehouse/client-certificates'
const certificateKey = 'tls.crt'
const privateKey = 'tls.key'

/** Returns the file paths. `owner` is the name of the remote server. */
export function clientCertificatePaths(owner: string): {
  readonly clientCertificatePath: string
  readonly clientKeyPath: string
} {
  return {
    clientCertificatePath: `${directory}/${owner}/${certificateKey}`,
    clientKeyPath: `${directory}/${owner}/${privateKey}`,
  }
}

export function mountClientCertificate(needs: PodNeeds, owner: string, secret: string): void {
  const items = [certificateKey, privateKey].map((key) => ({ key, path: key }))
  needs.secretFiles(`client-certificate-${owner}`, `${directory}/${owner}`, secret, items)
}

/** Returns the references to the certificate and its key. */
export function clientCertificateKeys({ name }: { readonly name: string }): readonly SecretRef[] {
  return [certificateKey, privateKey].map((key) => ({ name, key }))
}

/** Returns the failure if the Secret or one of its keys does not exist. */
export function clientCertificateFailure(
  context: AnyContext,
  secret: { readonly name: string },
): SyncFailure | undefined {
  const refs = clientCertificateKeys(secret)
  return context.missingSecretsFailure(refs, 'ClientCertificateNotFound', 'spec.clientCertificateSecretRef')
}
