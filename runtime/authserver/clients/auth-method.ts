/**
 * Selects the method with which a client authenticates at the token endpoint, from its registration or metadata
 * document.
 *
 * `token_endpoint_auth_method` is the client's preferred method. `token_endpoint_auth_methods_supported` lists all
 * methods that it can use. A registered client can have a secret, and a client with a metadata document can have keys
 * (private_key_jwt). This server rejects a client that requires any other method. Otherwise, it would treat the client
 * as public, and the client would fail at the token endpoint.
 * Source: RFC 7591 sections 2 and 3.2.1; OpenID Connect Relying Party Metadata Choices 1.0;
 * draft-ietf-oauth-client-id-metadata-document-02 section 4.1.
 */
import { isLoopbackHost } from '../../net/index.ts'
import { type AssertionAlg, assertionAlgs } from '../../oauth/index.ts'
import { hasPrivateMembers, isFields } from '../../../schemas/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { type AssertionKeys, usableKeys } from './client-key-sets.ts'
import type { ClientMetadataDocument } from './client-metadata.ts'

/** Methods that registered clients can use. */
type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post'

const preferred = 'token_endpoint_auth_method'
const alternatives = 'token_endpoint_auth_methods_supported'

/**
 * Returns the method of a registered client: the first listed method that this server supports. A client that requests
 * a secret becomes a public client unless `confidentialClients` is on. Clients that can use a secret also work without
 * a secret. Throws OAuthError invalid_client_metadata.
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

/**
 * Returns the keys that a client with a metadata document authenticates with, or undefined for a public client. The
 * client must use the first listed method that this server supports. Throws OAuthError invalid_client_metadata.
 */
export function selectDocumentAuth(
  clientId: string,
  document: ClientMetadataDocument,
): AssertionKeys | undefined {
  const methods = readMethods(document)
  if (methods.length === 0) return undefined
  const keys = methods.includes(keyMethod) ? readKeys(clientId, document) : undefined
  const method = methods.find((name) => name === 'none' || (name === keyMethod && keys !== undefined))
  if (method === undefined)
    throw documentError('it must allow the client authentication method none, or private_key_jwt with keys')
  return method === keyMethod ? keys : undefined
}

const keyMethod = 'private_key_jwt'

/** Returns undefined when the document has no keys, or requires an algorithm that this server does not support. */
function readKeys(clientId: string, document: ClientMetadataDocument): AssertionKeys | undefined {
  const { jwks, jwks_uri: jwksUri, token_endpoint_auth_signing_alg: required } = document
  const algs = readAlgs(required)
  if (jwks !== undefined && jwksUri !== undefined)
    throw documentError('it must not contain both jwks and jwks_uri')
  if (jwksUri !== undefined) {
    if (typeof jwksUri !== 'string' || !isKeyUrl(jwksUri, clientId))
      throw documentError('jwks_uri must be an https URL without a user name, password or fragment')
    return algs && { jwksUri, algs }
  }
  if (jwks === undefined) return undefined
  const keys: unknown = isFields(jwks) ? jwks['keys'] : undefined
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > maxInlineKeys)
    throw documentError(`jwks must contain 1 to ${maxInlineKeys} keys`)
  if (keys.some((key: unknown) => isFields(key) && hasPrivateMembers(key)))
    throw documentError('jwks must contain public keys only')
  const usable = usableKeys(keys)
  if (usable.length === 0)
    throw documentError('jwks must contain a key for ES256, ES384, RS256, PS256 or EdDSA')
  return algs && { jwks: usable, algs }
}

const maxInlineKeys = 10

function readAlgs(required: unknown): readonly AssertionAlg[] | undefined {
  if (required === undefined || required === null || required === '') return assertionAlgs
  const known = assertionAlgs.find((alg) => alg === (required === 'Ed25519' ? 'EdDSA' : required))
  return known && [known]
}

/** Requires https, except for a URL on this machine, which is accepted only if the document is on this machine too. */
function isKeyUrl(url: string, clientId: string): boolean {
  if (url.length > 2048 || !URL.canParse(url) || url.includes('#')) return false
  const { protocol, hostname, username, password } = new URL(url)
  if (username !== '' || password !== '') return false
  if (isLoopbackHost(hostname)) return isLoopbackHost(new URL(clientId).hostname)
  return protocol === 'https:'
}

function documentError(text: string): OAuthError {
  return new OAuthError('invalid_client_metadata', text)
}

function isSupported(method: string): method is AuthMethod {
  return method === 'none' || method === 'client_secret_basic' || method === 'client_secret_post'
}

/** Returns the listed methods, with the preferred method first. Null and empty fields are treated as absent. */
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
