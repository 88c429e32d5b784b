/**
 * The proxy's client at the target's authorization server: a configured client, a metadata document, or the proxy's own
 * registration. A registration is persisted by issuer, redirect URI and scopes. If a server rejects the document or
 * loses a registration, the next option is tried.
 *
 * A registration's secret can expire. If the server supports managing registrations, the secret is renewed a day before
 * it expires, so that the client, and therefore the login, stays valid. The management URL must have the origin of the
 * registration endpoint, so that the management token is never sent to another server.
 * Source: docs/reference/specification/proxy-command.md#rules, rules 2 and 4; RFC 7591, RFC 7592; reference behavior
 * of persisted registrations.
 */
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { OAuthSettings } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import {
  type RegistrationRequest,
  type Fetch,
  hintedClient,
  hintFor,
  nativeClient,
  type OAuthClient,
  OAuthClientError,
  registerClient,
  registeredClient,
  type Registration,
  updateRegistration,
} from '../../oauth/index.ts'
import type { PersistedLogin } from './persisted.ts'
import type { Located } from './locate.ts'

export interface ClientParts {
  readonly settings: OAuthSettings
  readonly fetch: Fetch
  readonly log: Log
  readonly persisted: PersistedLogin
  readonly signal: AbortSignal
  readonly now: () => number
}

/** The proxy's own registration; plain JSON with secrets. */
export interface OwnRegistration {
  readonly redirectUri: string
  readonly value: Registration
}

export interface LoginClient {
  readonly client: OAuthClient
  /** Undefined for a client that the proxy did not register. */
  readonly registration?: OwnRegistration | undefined
}

const renewAheadMs = 86_400_000
/** A secret that expires sooner than this is not used for a new login. */
const usableMs = 60_000

/** A client that may be used with the server. */
export interface ClientCandidate extends LoginClient {
  /** True if another client can be tried when the server does not recognize or accept this client. */
  readonly hasFallback: boolean
}

/** A rejected metadata document is skipped for this long. */
const documentPauseMs = 86_400_000

/**
 * Yields the possible clients for this server, with the preferred client first. Requesting the next client means that
 * the server rejected the previous client. The last client has no fallback. Rejects with OAuthClientError, or with
 * GatehouseError when no client is possible.
 */
export async function* clientCandidates(
  located: Located,
  redirectUri: string,
  parts: ClientParts,
): AsyncGenerator<ClientCandidate, void> {
  const { settings, persisted, fetch, signal, now } = parts
  const { server } = located
  const endpoint = server.registration_endpoint
  const hasFallback = endpoint !== undefined
  const configured = configuredClient(settings)
  if (configured) {
    yield { client: configured, hasFallback: false }
    return
  }
  const document = settings.clientMetadataUrl
  const isDocumentAccepted = server['client_id_metadata_document_supported'] === true
  if (
    document !== undefined &&
    isDocumentAccepted &&
    !(hasFallback && wasRefused(document, located, parts))
  ) {
    const client = { clientId: document }
    yield { client, hasFallback }
    if (!hasFallback) return
    giveUpClient({ client }, located, parts)
  }
  const name = nameOf(located, redirectUri)
  const known = persisted.read(name)
  if (isRegistration(known)) {
    const value = await renewed({ redirectUri, value: known }, located, parts)
    if (endOf(value) > now() + usableMs) {
      yield { ...own(redirectUri, value), hasFallback }
      if (!hasFallback) return
      giveUpClient(own(redirectUri, value), located, parts)
    }
  }
  if (endpoint === undefined) {
    throw new GatehouseError('BACKEND_AUTH_FAILED', {
      detail:
        'the authorization server does not support client registration; set --remote-auth-client-id (and its secret, if any)',
    })
  }
  const made = await registerClient(endpoint, metadata(located, redirectUri), { fetch, signal })
  persisted.write(name, made)
  yield { ...own(redirectUri, made), hasFallback: false }
}

/**
 * Returns the client in the settings; undefined if there is none. The client's secret may have changed since a login
 * was persisted.
 */
export function configuredClient({
  clientId,
  clientSecret,
  provider,
}: OAuthSettings): OAuthClient | undefined {
  if (clientId === undefined) return undefined
  return hintedClient(hintFor(provider), { clientId, clientSecret: clientSecret?.reveal() })
}

/** Returns the client, with a new secret when the old secret expires soon and the server renews it. Does not throw. */
export async function renewedClient(
  { client, registration }: LoginClient,
  located: Located,
  parts: ClientParts,
): Promise<LoginClient> {
  if (!registration) return { client }
  const value = await renewed(registration, located, parts)
  return value === registration.value ? { client, registration } : own(registration.redirectUri, value)
}

/**
 * Makes the next login use a different client: removes the proxy's own registration, or skips a metadata document for a
 * day.
 */
export function giveUpClient(
  { client, registration }: LoginClient,
  located: Located,
  { settings, persisted, now }: ClientParts,
): void {
  if (registration) persisted.remove(nameOf(located, registration.redirectUri))
  else if (client.clientId === settings.clientMetadataUrl)
    persisted.write(refusedName(client.clientId, located), { refusedAtMs: now() })
}

function wasRefused(document: string, located: Located, { persisted, now }: ClientParts): boolean {
  const found = persisted.read(refusedName(document, located))
  const atMs = isFields(found) ? found['refusedAtMs'] : undefined
  return typeof atMs === 'number' && now() - atMs < documentPauseMs
}

function refusedName(document: string, { server }: Located): string {
  return `refused document ${server.issuer} ${document}`
}

async function renewed(
  { redirectUri, value }: OwnRegistration,
  located: Located,
  { fetch, persisted, log, signal, now }: ClientParts,
): Promise<Registration> {
  if (endOf(value) - now() > renewAheadMs || !isManaged(value, located)) return value
  try {
    const made = await updateRegistration(value, metadata(located, redirectUri), { fetch, signal })
    persisted.write(nameOf(located, redirectUri), made)
    log.info('the client’s registration with the authorization server was renewed')
    return made
  } catch (error) {
    if (!(error instanceof OAuthClientError)) throw error
    log.warn('renewing the client registration failed', { err: error })
    return value
  }
}

function isManaged(
  { registrationClientUri, registrationAccessToken }: Registration,
  { server }: Located,
): boolean {
  const endpoint = server.registration_endpoint
  return (
    endpoint !== undefined &&
    registrationAccessToken !== undefined &&
    registrationClientUri !== undefined &&
    URL.canParse(registrationClientUri) &&
    new URL(registrationClientUri).origin === new URL(endpoint).origin
  )
}

function own(redirectUri: string, value: Registration): LoginClient {
  return { client: registeredClient(value), registration: { redirectUri, value } }
}

function endOf({ clientSecretExpiresAt }: Registration): number {
  return clientSecretExpiresAt ?? Number.POSITIVE_INFINITY
}

function nameOf(located: Located, redirectUri: string): string {
  return `client ${located.server.issuer} ${redirectUri} ${located.scopes.join(' ')}`
}

function metadata({ server, scopes }: Located, redirectUri: string): RegistrationRequest {
  return nativeClient('Gatehouse MCP LoginClient', server, redirectUri, scopes)
}

function isRegistration(value: unknown): value is Registration {
  return isFields(value) && typeof value['clientId'] === 'string'
}
