/**
 * An OAuth client as we present ourselves at token, introspection and revocation endpoints.
 *
 * Chooses the authentication method and makes what oauth4webapi calls to put the credentials on the request.
 * Private-key authentication is not offered. Source: RFC 6749 section 2.3, RFC 8414
 * (token_endpoint_auth_methods_supported).
 */
import { type ClientAuth, ClientSecretPost, None } from 'oauth4webapi'
import { OAuthClientError } from './client-error.ts'
import type { ServerMetadata } from './metadata/server-metadata.ts'

export type ClientAuthMethod = 'client_secret_basic' | 'client_secret_post' | 'none'

export interface OAuthClient {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** Fixed method, for instance from registration. Absent: chosen from the metadata. */
  readonly authMethod?: ClientAuthMethod | undefined
}

const preference: readonly ClientAuthMethod[] = ['client_secret_basic', 'client_secret_post', 'none']

/**
 * The method to use. Without a secret it is `none`; with one the first of basic, post and none that `supported` lists,
 * basic when nothing is listed. (Servers for public clients only are seen to hand out secrets at registration.) Throws
 * OAuthClientError `protocol` when the server supports none of them.
 */
export function chooseAuthMethod(
  client: OAuthClient,
  supported: readonly string[] | undefined,
): ClientAuthMethod {
  if (client.clientSecret === undefined) return 'none'
  if (client.authMethod !== undefined) return client.authMethod
  if (supported === undefined || supported.length === 0) return 'client_secret_basic'
  const method = preference.find((candidate) => supported.includes(candidate))
  if (method !== undefined) return method
  throw new OAuthClientError(
    'protocol',
    'the authorization server supports no client authentication that we offer',
  )
}

const methods: Record<ClientAuthMethod, (secret: string) => ClientAuth> = {
  client_secret_basic: basic,
  client_secret_post: ClientSecretPost,
  none: None,
}

/**
 * Id and secret in form encoding (RFC 6749 section 2.3.1), by the URL standard's serialiser: letters, digits and `*-._`
 * stay as they are. oauth4webapi escapes those four too, and servers that do not decode take that for another client.
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

/** The oauth4webapi form of a method. */
export function clientAuth(client: OAuthClient, method: ClientAuthMethod): ClientAuth {
  return methods[method](client.clientSecret ?? '')
}

/** True when a second try with the secret in the body is worth it: the metadata named no method and Basic failed. */
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
