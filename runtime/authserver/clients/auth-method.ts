/**
 * Selects how a client authenticates at the token endpoint, from its registration or metadata document.
 *
 * `token_endpoint_auth_method` is the client's preferred method. `token_endpoint_auth_methods_supported` lists all
 * methods that it can use. This server does not support methods that use the client's key or certificate
 * (private_key_jwt, tls_client_auth). It rejects a client that requires one, because that client would otherwise fail
 * at the token endpoint as a public client.
 * Source: RFC 7591 sections 2 and 3.2.1; OpenID Connect Relying Party Metadata Choices 1.0;
 * draft-ietf-oauth-client-id-metadata-document-02 section 4.1.
 */
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import type { ClientMetadataDocument } from './client-metadata.ts'

type AuthMethod = RegisteredClient['authMethod']

const preferred = 'token_endpoint_auth_method'
const alternatives = 'token_endpoint_auth_methods_supported'

/**
 * Returns the method of a registered client: the first listed method that this server supports. A client that requests
 * a secret becomes a public client unless `confidentialClients` is on, because such clients also work without a secret.
 * Throws OAuthError invalid_client_metadata.
 */
export function selectAuthMethod(
  metadata: ClientMetadataDocument,
  { confidentialClients }: { readonly confidentialClients: boolean },
): AuthMethod {
  const methods = readMethods(metadata)
  if (methods.length === 0) return 'none'
  const method = methods.find(isSupported)
  if (method === undefined) {
    throw new OAuthError(
      'invalid_client_metadata',
      `${preferred} must be none, client_secret_basic or client_secret_post`,
    )
  }
  return confidentialClients ? method : 'none'
}

/** Throws invalid_client_metadata when a metadata document does not allow `none`, because its client has no secret. */
export function requirePublicClient(document: ClientMetadataDocument): void {
  const methods = readMethods(document)
  if (methods.length > 0 && !methods.includes('none')) {
    throw new OAuthError(
      'invalid_client_metadata',
      'it must allow the client authentication method none: this server supports no other method for such clients',
    )
  }
}

function isSupported(method: string): method is AuthMethod {
  return method === 'none' || method === 'client_secret_basic' || method === 'client_secret_post'
}

/** Returns the listed methods with the preferred one first. Null and empty fields are treated as absent. */
function readMethods(metadata: ClientMetadataDocument): readonly string[] {
  const first = metadata[preferred] ?? ''
  const others = metadata[alternatives] ?? []
  if (typeof first !== 'string')
    throw new OAuthError('invalid_client_metadata', `${preferred} must be a string`)
  if (!Array.isArray(others) || !others.every((item): item is string => typeof item === 'string')) {
    throw new OAuthError('invalid_client_metadata', `${alternatives} must be a list of strings`)
  }
  return first === '' ? others : [first, ...others]
}
