/**
 * Registers this server as a client of an upstream provider (dcrConfig), once for all replicas.
 *
 * Lazily, under a lock, and saved in the store until its secret is about to expire. `discoveryUrl` is asked with one
 * GET and no fallbacks; a document without registration_endpoint is a failure, not an invitation to guess. With
 * `registrationEndpoint` the endpoints are those of the configuration. A registration whose metadata no longer fits the
 * configuration is not used again: its key in the store is made of everything that was registered.
 * Source: docs/specification/external-auth.md#dcrConfig, dcrConfig; RFC 7591; RFC 8414 section 3.
 */
import type { OAuth2UpstreamSettings, UpstreamRegistrationConfig } from '../../config/index.ts'
import {
  type ClientAuthMethod,
  fetchServerMetadata,
  OAuthClientError,
  registerClient,
  type ServerMetadata,
  supportsS256,
} from '../../oauth/index.ts'
import { withLock } from '../../store/index.ts'
import type { UpstreamRegistration } from '../model/records.ts'
import { type State } from '../storage/state.ts'
import type { UpstreamParts } from './oidc-upstream.ts'
import { sha256, compoundKey } from '../model/identifiers.ts'

/** A secret is replaced this long before it ends. */
const renewBeforeMs = 5 * 60_000
/** A registration without an expiring secret is looked up again after this; the store keeps it much longer. */
const maxLifeMs = 400 * 24 * 3_600_000

export interface RegistrationParts extends UpstreamParts {
  readonly state: State
  readonly issuer: string
}

/** What the provider's document says; used for endpoints that the configuration leaves out. */
export async function discoverForRegistration(
  dcr: UpstreamRegistrationConfig,
  parts: UpstreamParts,
): Promise<ServerMetadata | undefined> {
  if (dcr.discoveryUrl === undefined) return undefined
  return fetchServerMetadata(dcr.discoveryUrl, issuerOf(dcr.discoveryUrl), { fetch: parts.fetch })
}

/** The issuer whose document has this address: the well-known part taken out, in either form (RFC 8414, OIDC). */
export function issuerOf(discoveryUrl: string): string {
  const url = new URL(discoveryUrl)
  const wellKnown = /\/\.well-known\/(?:oauth-authorization-server|openid-configuration)(?=\/|$)/
  const path = url.pathname.replace(wellKnown, '').replace(/\/+$/, '')
  return wellKnown.test(url.pathname) ? `${url.origin}${path}` : url.origin
}

/** Finds the registration in the store or makes one. Rejects with OAuthClientError. */
export async function obtainRegistration(
  config: OAuth2UpstreamSettings,
  dcr: UpstreamRegistrationConfig,
  metadata: ServerMetadata | undefined,
  parts: RegistrationParts,
): Promise<UpstreamRegistration> {
  const wanted = wish(config, dcr, metadata)
  const id = keyOf(wanted, config, dcr, parts)
  const known = await usable(id, parts)
  if (known) return known
  const lock = { ttlMs: 60_000, waitMs: 60_000 }
  return withLock(parts.state.store, `dcr:${sha256(id)}`, lock, async () => {
    const meanwhile = await usable(id, parts)
    if (meanwhile) return meanwhile
    const made = await register(wanted, config, dcr, chooseMethod(metadata), parts)
    const lifeMs = made.secretExpiresAtMs === undefined ? maxLifeMs : made.secretExpiresAtMs - parts.now()
    await parts.state.registrations.put(id, made, Math.min(maxLifeMs, lifeMs))
    parts.log.info('registered at the upstream provider', { upstream: config.name })
    return made
  })
}

/** Forgets a registration that the provider no longer knows, so that the next use registers again. */
export async function forgetRegistration(
  config: OAuth2UpstreamSettings,
  dcr: UpstreamRegistrationConfig,
  metadata: ServerMetadata | undefined,
  stale: UpstreamRegistration,
  parts: RegistrationParts,
): Promise<void> {
  const id = keyOf(wish(config, dcr, metadata), config, dcr, parts)
  const seen = await parts.state.registrations.read(id)
  if (seen?.value.clientId === stale.clientId) await parts.state.registrations.swap(id, seen, undefined)
}

interface Wish {
  readonly endpoint: string
  readonly scopes: readonly string[] | undefined
}

function wish(
  config: OAuth2UpstreamSettings,
  dcr: UpstreamRegistrationConfig,
  metadata: ServerMetadata | undefined,
): Wish {
  const endpoint = dcr.registrationEndpoint ?? metadata?.registration_endpoint
  if (endpoint === undefined) {
    throw new OAuthClientError('absent', 'the upstream provider offers no client registration')
  }
  return { endpoint, scopes: config.scopes.length > 0 ? config.scopes : metadata?.scopes_supported }
}

/** Another configuration is another registration. */
function keyOf(
  { endpoint, scopes }: Wish,
  config: OAuth2UpstreamSettings,
  dcr: UpstreamRegistrationConfig,
  parts: RegistrationParts,
): string {
  const scopeSet = [...new Set(scopes ?? [])].toSorted().join(' ')
  return compoundKey(
    parts.issuer,
    endpoint,
    config.redirectUri,
    scopeSet,
    dcr.softwareId ?? '',
    dcr.softwareStatement ?? '',
  )
}

async function usable(id: string, parts: RegistrationParts): Promise<UpstreamRegistration | undefined> {
  const known = await parts.state.registrations.get(id)
  const fresh =
    known?.secretExpiresAtMs === undefined || known.secretExpiresAtMs - parts.now() > renewBeforeMs
  return fresh ? known : undefined
}

function chooseMethod(metadata: ServerMetadata | undefined): ClientAuthMethod {
  const supported = metadata?.token_endpoint_auth_methods_supported
  if (supported === undefined || supported.length === 0) return 'client_secret_basic'
  if (supported.includes('client_secret_basic')) return 'client_secret_basic'
  if (supported.includes('client_secret_post')) return 'client_secret_post'
  if (supported.includes('none') && metadata && supportsS256(metadata)) return 'none'
  throw new OAuthClientError(
    'protocol',
    'the upstream provider offers no client authentication that we support',
  )
}

async function register(
  { endpoint, scopes }: Wish,
  config: OAuth2UpstreamSettings,
  dcr: UpstreamRegistrationConfig,
  method: ClientAuthMethod,
  parts: RegistrationParts,
): Promise<UpstreamRegistration> {
  const made = await registerClient(
    endpoint,
    {
      redirect_uris: [config.redirectUri],
      client_name: 'Gatehouse',
      application_type: new URL(config.redirectUri).protocol === 'https:' ? 'web' : 'native',
      token_endpoint_auth_method: method,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(scopes === undefined || scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
      ...(dcr.softwareId === undefined ? {} : { software_id: dcr.softwareId }),
      ...(dcr.softwareStatement === undefined ? {} : { software_statement: dcr.softwareStatement }),
    },
    { fetch: parts.fetch, initialAccessToken: dcr.initialAccessToken?.() },
  )
  return {
    clientId: made.clientId,
    authMethod: made.authMethod ?? method,
    ...(made.clientSecret === undefined ? {} : { clientSecret: made.clientSecret }),
    ...(made.clientSecretExpiresAt === undefined ? {} : { secretExpiresAtMs: made.clientSecretExpiresAt }),
    ...(made.scopes === undefined ? {} : { scopes: made.scopes }),
    ...(made.registrationAccessToken === undefined ? {} : { managementToken: made.registrationAccessToken }),
    ...(made.registrationClientUri === undefined ? {} : { managementUri: made.registrationClientUri }),
  }
}
