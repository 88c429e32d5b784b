/**
 * Dynamic client registration, as the client that registers.
 *
 * The result is plain JSON, so that it can be stored and used again; when it ends is for the holder to watch
 * (`clientSecretExpiresAt`). Redirects are not followed: the metadata must not reach another host.
 * Source: RFC 7591, RFC 7592; MCP 2026-07-28 authorization (application_type).
 */
import {
  type OAuthCallOptions,
  type JsonRecord,
  optionalString,
  readJson,
  requiredString,
  send,
} from './call.ts'
import { type ClientAuthMethod, isClientAuthMethod, type OAuthClient } from './client.ts'
import { OAuthClientError } from './client-error.ts'
import type { ServerMetadata } from './metadata/server-metadata.ts'

/** RFC 7591 client metadata by its own names. */
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

/** What a program on the user's machine registers: public where the server allows it, redirected to loopback. */
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

/** Holds secrets: store it encrypted or with mode 0600, never log it. */
export interface Registration {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** Unix milliseconds; absent when the secret does not expire. */
  readonly clientSecretExpiresAt?: number | undefined
  readonly authMethod?: ClientAuthMethod | undefined
  /** What the server granted, when it said so. */
  readonly scopes?: readonly string[] | undefined
  /** RFC 7592 management, when offered. */
  readonly registrationAccessToken?: string | undefined
  readonly registrationClientUri?: string | undefined
}

const what = 'the registration endpoint'

/**
 * Registers. Rejects with OAuthClientError: `absent` when the endpoint says that registration is not supported (404, 405,
 * 501), `refused` with the server's error code, `unreachable`, or `protocol`.
 */
export async function registerClient(
  endpoint: string,
  metadata: RegistrationRequest,
  options: OAuthCallOptions & {
    /** Presented as Bearer. */
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
 * Sends the metadata of a registration again, by which the server renews its secret. The client id stays; what the
 * answer leaves out of the management data stays as it was. Rejects with OAuthClientError, `protocol` when the server did not
 * say how to manage the registration or answered with another client.
 */
export async function updateRegistration(
  registration: Registration,
  metadata: RegistrationRequest,
  options: OAuthCallOptions,
): Promise<Registration> {
  const { clientId, clientSecret, registrationAccessToken, registrationClientUri } = registration
  if (registrationAccessToken === undefined || registrationClientUri === undefined) {
    throw new OAuthClientError('protocol', `${what} does not manage registrations`)
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
  if (made.clientId !== clientId)
    throw new OAuthClientError('protocol', `${what} answered with another client`)
  return {
    ...made,
    clientSecret: made.clientSecret ?? clientSecret,
    authMethod: made.authMethod ?? registration.authMethod,
    registrationAccessToken: made.registrationAccessToken ?? registrationAccessToken,
    registrationClientUri: made.registrationClientUri ?? registrationClientUri,
  }
}

/** Deletes a registration where the server offers that; false when it does not or refuses. Does not reject. */
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
    throw new OAuthClientError('protocol', `${what} chose a client authentication that we do not offer`)
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

/** RFC 7591 says a string; some servers send a list. */
function scopeList(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter((scope) => scope !== '')
  if (Array.isArray(value) && value.every((scope) => typeof scope === 'string')) return value
  return undefined
}

/** Unix seconds to milliseconds; 0 means never. */
function milliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value * 1000 : undefined
}

/** The registration as a client for token requests. */
export function registeredClient(registration: Registration): OAuthClient {
  return {
    clientId: registration.clientId,
    clientSecret: registration.clientSecret,
    authMethod: registration.authMethod,
  }
}
