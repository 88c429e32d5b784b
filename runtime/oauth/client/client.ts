/**
 * The credentials with which we authenticate at token, introspection and revocation endpoints.
 *
 * Chooses the authentication method and creates the function that oauth4webapi calls to add the credentials to a
 * request.
 * Source: RFC 6749 section 2.3; RFC 7523 section 2.2; draft-ietf-oauth-rfc7523bis-10; RFC 8414
 * (token_endpoint_auth_methods_supported).
 */
import { type ClientAuth, ClientSecretPost, modifyAssertion, None, PrivateKeyJwt } from 'oauth4webapi'
import { OAuthClientError } from '../client-error.ts'
import type { ClientKey } from './client-key.ts'
import type { ServerMetadata } from '../metadata/server-metadata.ts'

/** Methods that require no key. Dynamic registration uses these. */
export type ClientAuthMethod = 'client_secret_basic' | 'client_secret_post' | 'none'

export interface OAuthClient {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** Signs an assertion for each request (private_key_jwt). Takes precedence over the secret. */
  readonly privateKey?: ClientKey | undefined
  /** A token that the platform issued, sent as the client's assertion. Takes precedence over the secret. */
  readonly assertion?: string | undefined
  /** Audience of assertions, for servers that require an audience other than their issuer. */
  readonly assertionAudience?: string | undefined
  /** A fixed method, for instance from the registration. Absent: chosen from the metadata. */
  readonly authMethod?: ClientAuthMethod | undefined
}

const preference: readonly ClientAuthMethod[] = ['client_secret_basic', 'client_secret_post', 'none']

/**
 * Returns the authentication method: `private_key_jwt` with a key, `client_assertion` with an assertion, and `none`
 * without a credential. With a secret, the method is the first of basic, post and none that `supported` lists, or basic
 * when `supported` is empty. (`none` is included because some servers for public clients return a secret at
 * registration.) Throws OAuthClientError `protocol` when the server supports none of them.
 */
export function chooseAuthMethod(
  client: OAuthClient,
  supported: readonly string[] | undefined,
): ClientAuthMethod | 'private_key_jwt' | 'client_assertion' {
  if (client.privateKey !== undefined) return 'private_key_jwt'
  if (client.assertion !== undefined) return 'client_assertion'
  if (client.clientSecret === undefined) return 'none'
  if (client.authMethod !== undefined) return client.authMethod
  if (supported === undefined || supported.length === 0) return 'client_secret_basic'
  const method = preference.find((candidate) => supported.includes(candidate))
  if (method !== undefined) return method
  throw new OAuthClientError(
    'protocol',
    'the authorization server supports none of our client authentication methods',
  )
}

const methods: Record<ClientAuthMethod, (secret: string) => ClientAuth> = {
  client_secret_basic: basic,
  client_secret_post: ClientSecretPost,
  none: None,
}

/** Sends an assertion that is valid for 60 s. By default, the audience of the assertion is the server's issuer. */
function privateKeyJwt({ privateKey, assertionAudience }: OAuthClient): ClientAuth {
  if (!privateKey) throw new OAuthClientError('protocol', 'private_key_jwt requires a private key')
  return PrivateKeyJwt(privateKey, {
    [modifyAssertion](header, payload) {
      header['alg'] = privateKey.alg
      header['typ'] = 'client-authentication+jwt'
      // A server whose clock is behind would reject `nbf`, and `iat` and `exp` already limit the lifetime.
      delete payload['nbf']
      if (assertionAudience !== undefined) payload['aud'] = assertionAudience
    },
  })
}

function clientAssertion({ assertion = '' }: OAuthClient): ClientAuth {
  return (_server, { client_id: id }, body) => {
    body.set('client_id', id)
    body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    body.set('client_assertion', assertion)
  }
}

/**
 * Form-encodes the id and the secret (RFC 6749 section 2.3.1) with the URL standard's serializer, which keeps letters,
 * digits and `*-._`. oauth4webapi also escapes those four characters, and servers that do not decode them see a
 * different client.
 */
function basic(secret: string): ClientAuth {
  return (_server, { client_id: id }, _body, headers) => {
    const credentials = `${formEncoded(id)}:${formEncoded(secret)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }
}

function formEncoded(value: string): string {
  return new URLSearchParams({ '': value }).toString().slice(1)
}

export function isClientAuthMethod(value: string): value is ClientAuthMethod {
  return Object.hasOwn(methods, value)
}

/** Returns the method in the form that oauth4webapi expects. */
export function clientAuth(client: OAuthClient, method: ReturnType<typeof chooseAuthMethod>): ClientAuth {
  if (method === 'private_key_jwt') return privateKeyJwt(client)
  if (method === 'client_assertion') return clientAssertion(client)
  return methods[method](client.clientSecret ?? '')
}

/** True when a retry with the secret in the body may succeed: the metadata listed no methods and Basic failed. */
export function mayRetryInBody(client: OAuthClient, server: ServerMetadata, error: unknown): boolean {
  return (
    client.clientSecret !== undefined &&
    client.authMethod === undefined &&
    server.token_endpoint_auth_methods_supported === undefined &&
    error instanceof OAuthClientError &&
    error.kind === 'refused' &&
    (error.error === 'invalid_client' || (error.error === undefined && error.responseStatus === 401))
  )
}
