/**
 * The client certificate for a remote MCP server, a decision point or a webhook. Remote servers and decision points use
 * a Secret of type kubernetes.io/tls, mounted as a directory. The runtime reloads the files, so a rotation does not
 * replace the pods.
 */
import { pairViolations } from '../../schemas/certificate/index.ts'
import { formatViolations, type SecretRef } from '../../schemas/index.ts'
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

/** Returns the references to the certificate and the key in a Secret of type kubernetes.io/tls. */
export function clientPairIn({ name }: { readonly name: string }): ClientPair {
  return { cert: { name, key: certificateKey }, key: { name, key: privateKey } }
}

export interface ClientPair {
  readonly cert: SecretRef
  readonly key: SecretRef
}

/** Returns the failure if the certificate and the key exist, but cannot be used together. */
export function clientPairFailure(
  context: AnyContext,
  { cert, key }: ClientPair,
  field: string,
): SyncFailure | undefined {
  if (context.missingSecrets([cert, key]).length > 0) return undefined
  const violations = pairViolations(
    { cert: context.secretValue(cert), key: context.secretValue(key) },
    {
      cert: `Secret ${cert.name}, key ${cert.key}`,
      key: `Secret ${key.name}, key ${key.key}`,
      owner: 'client',
    },
  )
  if (violations.length === 0) return undefined
  const why = formatViolations(violations).replaceAll('\n', '; ')
  return { reason: 'ClientCertificateInvalid', message: `${field}: ${why}` }
}

/** Returns the failure if the Secret or one of its keys does not exist, or the pair cannot be used. */
export function clientCertificateFailure(
  context: AnyContext,
  secret: { readonly name: string },
): SyncFailure | undefined {
  const field = 'spec.clientCertificateSecretRef'
  const pair = clientPairIn(secret)
  return (
    context.missingSecretsFailure([pair.cert, pair.key], 'ClientCertificateNotFound', field) ??
    clientPairFailure(context, pair, field)
  )
}
