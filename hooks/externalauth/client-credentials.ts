/** Type `clientCredentials`: the gateway obtains a token for itself. */
import type { ClientAuth, ClientCredentialsConfig } from '../../schemas/index.ts'
import { definedFields } from '../base/kube.ts'
import { clientAuthPart, secretPath } from '../runtime-config/client-auth.ts'
import { credentialFiles, definedItems, type ExternalAuthModule } from './module.ts'

export const clientCredentials: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ clientCredentials: config }) => definedItems([config?.clientSecretRef, config?.privateKeyRef]),
  rereadSecrets: ({ clientCredentials: config }) =>
    definedItems([config?.clientSecretRef, config?.privateKeyRef]),
  toRuntime({ clientCredentials: config }, target) {
    if (!config) return { value: undefined }
    const { issuer, tokenUrl, clientId, clientSecretRef, scopes, resource, audience } = config
    const settings = definedFields({
      issuer,
      tokenUrl,
      clientId,
      clientSecretPath:
        clientSecretRef && secretPath('client-secret', clientSecretRef, credentialFiles(target)),
      clientAuth: clientAuthPart(
        clientAuthOf(config),
        'client',
        issuer ?? tokenUrl ?? '',
        credentialFiles(target),
      ),
      scopes,
      resource,
      audience,
    })
    return { value: { type: 'client_credentials', clientCredentials: settings } }
  },
}

/** Returns undefined for a client with a secret, because the server determines the method. */
function clientAuthOf({
  clientSecretRef,
  privateKeyRef,
  serviceAccountToken,
  signingAlg,
  assertionAudience,
}: ClientCredentialsConfig): ClientAuth | undefined {
  if (clientSecretRef) return undefined
  const method: ClientAuth['method'] = privateKeyRef ? 'privateKeyJwt' : 'federated'
  return definedFields({ method, privateKeyRef, serviceAccountToken, signingAlg, assertionAudience })
}
