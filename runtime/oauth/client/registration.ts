/**
 * Dynamic client registration, from the client's side.
 *
 * The result is plain JSON that can be stored and reused; the caller must check its expiry (`clientSecretExpiresAt`).
 * Redirects are not followed: the metadata must not reach another host.
 * Source: RFC 7591, RFC 7592; MCP 2026-07-28 authorization (application_type).
 */
import {
  type OAuthCallOptions,
  type JsonRecord,
  optionalString,
  readJson,
  requiredString,
  send,
} from '../call.ts'
import { type ClientAuthMethod, isClientAuthMethod, type OAuthClient } from './client.ts'
import { OAuthClientError } from '../client-error.ts'
import type { ServerMetadata } from '../metadata/server-metadata.ts'

/** RFC 7591 client metadata. Members have the names that the RFC defines. */
export interface RegistrationRequest {
  readonly redirect_uris: readonly string[]
  readonly client_name?: string
  readonly token_endpoint_auth_method?: string
  readonly grant_types?: readonly string[]
  readonly response_types?: readonly string[]
  readonly scope?: string
  readonly application_type?: 'native' | 'web'
  readonly software_id?: string
  readonly software_statement?: string
}

/** Returns the metadata for a native program: a public client if the server allows it, with a loopback redirect. */
export function nativeClient(
  name: string,
  server: Pick<ServerMetadata, 'token_endpoint_auth_methods_supported'>,
  redirectUri: string,
  scopes: readonly string[],
): RegistrationRequest {
  const supported = server.token_endpoint_auth_methods_supported
  const method =
    supported === undefined || supported.includes('none')
      ? 'none'
      : (supported.find(
          (candidate) => candidate === 'client_secret_basic' || candidate === 'client_secret_post',
        ) ?? 'none')
  return {
    redirect_uris: [redirectUri],
    client_name: name,
    application_type: 'native',
    token_endpoint_auth_method: method,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
  }
}

/** Contains secrets: store it encrypted or with mode 0600, and never log it. */
export interface Registration {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** Unix milliseconds; absent when the secret does not expire. */
  readonly clientSecretExpiresAt?: number | undefined
  readonly authMethod?: ClientAuthMethod | undefined
  /** Scopes that the server granted, if it reported them. */
  readonly scopes?: readonly string[] | undefined
  /** Token for RFC 7592 management, if the server offers it. */
  readonly registrationAccessToken?: string | undefined
  readonly registrationClientUri?: string | undefined
}

const what = 'the registration endpoint'

/**
 * Registers a client. Rejects with OAuthClientError: `absent` when the endpoint does not support registration (404,
 * 405, 501), `refused` with the server's error code, `unreachable`, or `protocol`.
 */
export async function registerClient(
  endpoint: string,
  metadata: RegistrationRequest,
  options: OAuthCallOptions & {
    /** The initial access token, which is sent as a bearer token. */
    readonly initialAccessToken?: string | undefined
  },
): Promise<Registration> {
  const authorization: Record<string, string> =
    options.initialAccessToken === undefined ? {} : { authorization: `Bearer ${options.initialAccessToken}` }
  const response = await send(
    what,
    endpoint,
    {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', ...authorization },
      body: JSON.stringify(metadata),
    },
    options,
  )
  return readRegistration(await readJson(what, response, [200, 201]))
}

/**
 * Sends a registration's metadata again, so that the server renews its secret. The client id stays the same, and
 * management data that the response omits is kept. Rejects with OAuthClientError; its kind is `protocol` when the
 * registration has no management endpoint or the response has a different client id.
 */
export async function updateRegistration(
  registration: Registration,
  metadata: RegistrationRequest,
  options: OAuthCallOptions,
): Promise<Registration> {
  const { clientId, clientSecret, registrationAccessToken, registrationClientUri } = registration
  if (registrationAccessToken === undefined || registrationClientUri === undefined) {
    throw new OAuthClientError('protocol', `${what} does not support managing registrations`)
  }
  const response = await send(
    what,
    registrationClientUri,
    {
      method: 'PUT',
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        authorization: `Bearer ${registrationAccessToken}`,
      },
      body: JSON.stringify({ ...metadata, client_id: clientId, client_secret: clientSecret }),
    },
    options,
  )
  const made = readRegistration(await readJson(what, response))
  if (made.clientId !== clientId) throw new OAuthClientError('protocol', `${what} returned another client`)
  return {
    ...made,
    clientSecret: made.clientSecret ?? clientSecret,
    authMethod: made.authMethod ?? registration.authMethod,
    registrationAccessToken: made.registrationAccessToken ?? registrationAccessToken,
    registrationClientUri: made.registrationClientUri ?? registrationClientUri,
  }
}

/**
 * Deletes a registration. Returns false when the server does not support deletion or rejects the request. Does not
 * reject.
 */
export async function deleteRegistration(
  { registrationAccessToken: token, registrationClientUri: uri }: Registration,
  options: OAuthCallOptions,
): Promise<boolean> {
  if (token === undefined || uri === undefined || !URL.canParse(uri)) return false
  try {
    const init = { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }
    const { status } = await send(what, uri, init, options)
    return status === 204 || status === 200
  } catch {
    return false
  }
}

function readRegistration(body: JsonRecord): Registration {
  const clientSecret = optionalString(what, body, 'client_secret')
  const authMethod = optionalString(what, body, 'token_endpoint_auth_method')
  if (authMethod !== undefined && !isClientAuthMethod(authMethod)) {
    throw new OAuthClientError(
      'protocol',
      `${what} chose a client authentication method that we do not support`,
    )
  }
  return {
    clientId: requiredString(what, body, 'client_id'),
    clientSecret,
    clientSecretExpiresAt:
      clientSecret === undefined ? undefined : milliseconds(body['client_secret_expires_at']),
    authMethod,
    scopes: scopeList(body['scope']),
    registrationAccessToken: optionalString(what, body, 'registration_access_token'),
    registrationClientUri: optionalString(what, body, 'registration_client_uri'),
  }
}

/** Reads scopes. RFC 7591 requires a string, but some servers send a list. */
function scopeList(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter((scope) => scope !== '')
  if (Array.isArray(value) && value.every((scope) => typeof scope === 'string')) return value
  return undefined
}

/** Converts Unix seconds to milliseconds. Returns undefined for 0, which means never. */
function milliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value * 1000 : undefined
}

/** Converts the registration to a client object for token requests. */
export function registeredClient(registration: Registration): OAuthClient {
  return {
    clientId: registration.clientId,
    clientSecret: registration.clientSecret,
    authMethod: registration.authMethod,
  }
}
