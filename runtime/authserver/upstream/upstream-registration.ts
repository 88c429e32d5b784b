/**
 * Registers this server as a client of an upstream provider (dcrConfig), once for all replicas.
 *
 * The server registers on first use, under a lock. The registration is stored until its secret is about to expire.
 * `discoveryUrl` is fetched once, without fallbacks. A document without registration_endpoint is an error. With
 * `registrationEndpoint`, the endpoints come from the configuration. The key in the store contains everything that was
 * registered, so a changed configuration causes a new registration.
 * Source: docs/reference/specification/external-auth.md#dcrConfig, dcrConfig; RFC 7591; RFC 8414 section 3.
 */
import type { OAuth2UpstreamSettings, UpstreamRegistrationConfig } from '../../config/index.ts'
import {
  type ClientAuthMethod,
  fetchServerMetadata,
  OAuthClientError,
  registerClient,
  type RegistrationRequest,
  type ServerMetadata,
  supportsS256,
} from '../../oauth/index.ts'
import { withLock } from '../../store/index.ts'
import { compoundKey, sha256 } from '../model/identifiers.ts'
import type { UpstreamRegistration } from '../model/records.ts'
import type { State } from '../storage/state.ts'
import type { ProviderParts } from './upstream.ts'

/** How long before its expiry a secret is replaced. */
const renewBeforeMs = 5 * 60_000
/** Maximum lifetime of a stored registration. */
const maxLifeMs = 400 * 24 * 3_600_000

export interface RegistrationParts extends ProviderParts {
  readonly state: State
  readonly issuer: string
}

/** A provider where this server registers itself. */
export interface RegistrationTarget {
  readonly config: OAuth2UpstreamSettings
  readonly dcr: UpstreamRegistrationConfig
  /** The provider's document, for members that the configuration omits. */
  readonly metadata: ServerMetadata | undefined
}

/** Returns the provider's document; undefined without `discoveryUrl`. */
export async function discoverForRegistration(
  { discoveryUrl }: UpstreamRegistrationConfig,
  { fetch }: ProviderParts,
): Promise<ServerMetadata | undefined> {
  return discoveryUrl === undefined
    ? undefined
    : fetchServerMetadata(discoveryUrl, issuerOf(discoveryUrl), { fetch })
}

/** Returns the issuer of a document, which is its address without the well-known part (RFC 8414, OIDC). */
export function issuerOf(discoveryUrl: string): string {
  const url = new URL(discoveryUrl)
  const wellKnown = /\/\.well-known\/(?:oauth-authorization-server|openid-configuration)(?=\/|$)/
  const path = url.pathname.replace(wellKnown, '').replace(/\/+$/, '')
  return wellKnown.test(url.pathname) ? `${url.origin}${path}` : url.origin
}

/**
 * Returns the stored registration. If no registration is stored, registers this server. Rejects with OAuthClientError.
 */
export async function obtainRegistration(
  target: RegistrationTarget,
  parts: RegistrationParts,
): Promise<UpstreamRegistration> {
  const id = keyOf(target, parts)
  const known = await findUsable(id, parts)
  if (known) return known
  const lock = { ttlMs: 60_000, waitMs: 60_000 }
  return withLock(parts.state.store, `dcr:${sha256(id)}`, lock, async () => {
    const meanwhile = await findUsable(id, parts)
    if (meanwhile) return meanwhile
    const made = await register(target, parts)
    const lifeMs = made.secretExpiresAtMs === undefined ? maxLifeMs : made.secretExpiresAtMs - parts.now()
    await parts.state.registrations.put(id, made, Math.min(maxLifeMs, lifeMs))
    parts.log.info('registered with the upstream provider', { upstream: target.config.name })
    return made
  })
}

/** Deletes a registration that the provider no longer accepts, so that the next use registers again. */
export async function forgetRegistration(
  target: RegistrationTarget,
  stale: UpstreamRegistration,
  parts: RegistrationParts,
): Promise<void> {
  const id = keyOf(target, parts)
  const seen = await parts.state.registrations.read(id)
  if (seen?.value.clientId === stale.clientId) await parts.state.registrations.swap(id, seen, undefined)
}

function endpointOf({ dcr, metadata }: RegistrationTarget): string {
  const endpoint = dcr.registrationEndpoint ?? metadata?.registration_endpoint
  if (endpoint !== undefined) return endpoint
  throw new OAuthClientError('absent', 'the upstream provider does not support client registration')
}

function scopesOf({ config, metadata }: RegistrationTarget): readonly string[] {
  return config.scopes.length > 0 ? config.scopes : (metadata?.scopes_supported ?? [])
}

function keyOf(target: RegistrationTarget, { issuer }: RegistrationParts): string {
  const { redirectUri } = target.config
  const { softwareId = '', softwareStatement = '' } = target.dcr
  const scopes = [...new Set(scopesOf(target))].toSorted().join(' ')
  return compoundKey(issuer, endpointOf(target), redirectUri, scopes, softwareId, softwareStatement)
}

async function findUsable(id: string, parts: RegistrationParts): Promise<UpstreamRegistration | undefined> {
  const known = await parts.state.registrations.get(id)
  const isFresh =
    known?.secretExpiresAtMs === undefined || known.secretExpiresAtMs - parts.now() > renewBeforeMs
  return isFresh ? known : undefined
}

function chooseMethod(metadata: ServerMetadata | undefined): ClientAuthMethod {
  const supported = metadata?.token_endpoint_auth_methods_supported
  if (supported === undefined || supported.length === 0) return 'client_secret_basic'
  if (supported.includes('client_secret_basic')) return 'client_secret_basic'
  if (supported.includes('client_secret_post')) return 'client_secret_post'
  if (supported.includes('none') && metadata && supportsS256(metadata)) return 'none'
  throw new OAuthClientError(
    'protocol',
    'the upstream provider supports none of our client authentication methods',
  )
}

async function register(
  target: RegistrationTarget,
  { fetch }: RegistrationParts,
): Promise<UpstreamRegistration> {
  const { redirectUri } = target.config
  const { softwareId, softwareStatement, initialAccessToken } = target.dcr
  const method = chooseMethod(target.metadata)
  const scopes = scopesOf(target)
  const request: RegistrationRequest = {
    redirect_uris: [redirectUri],
    client_name: 'Gatehouse',
    application_type: new URL(redirectUri).protocol === 'https:' ? 'web' : 'native',
    token_endpoint_auth_method: method,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    ...(softwareId === undefined ? {} : { software_id: softwareId }),
    ...(softwareStatement === undefined ? {} : { software_statement: softwareStatement }),
  }
  const options = { fetch, initialAccessToken: initialAccessToken?.() }
  const made = await registerClient(endpointOf(target), request, options)
  return {
    clientId: made.clientId,
    clientSecret: made.clientSecret,
    authMethod: made.authMethod ?? method,
    secretExpiresAtMs: made.clientSecretExpiresAt,
    scopes: made.scopes,
    managementToken: made.registrationAccessToken,
    managementUri: made.registrationClientUri,
  }
}
