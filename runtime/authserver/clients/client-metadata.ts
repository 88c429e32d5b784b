/**
 * Turns client metadata, registered (RFC 7591) or fetched (client-id metadata document), into a client of this server.
 *
 * RFC 7591 section 3.2.1 lets a server replace metadata. Grant types are narrowed to the supported ones, and refused when
 * none is left. Unknown scopes are replaced by the defaults. A public client with loopback or private-use redirect URIs is
 * native, whatever its application_type is. Redirect URIs are never changed. Private-use URIs in a document are
 * skipped.
 * Display texts are the client's own claims; they are shown escaped and marked as such, and nothing they point to is
 * ever fetched.
 * Source: RFC 7591 sections 2 and 3.2.2; draft-ietf-oauth-client-id-metadata-document-02; docs/specification/external-auth.md.
 */
import { hiddenAnywhere, hiddenInLine } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { isUnownedRedirect, redirectUriViolation, usesPrivateScheme } from './redirect-uri.ts'
import { clientScopes, parseScope } from '../model/scopes.ts'

/** Members as they arrived, not yet believed. */
export type ClientMetadataDocument = Readonly<Record<string, unknown>>

export type ClientTraits = Omit<
  RegisteredClient,
  'id' | 'kind' | 'authMethod' | 'secretHash' | 'managementHash' | 'issuedAtSec' | 'used'
>

const grants = ['authorization_code', 'refresh_token'] as const
const maxRedirects = 10
const offlineAccess = 'offline_access'

export interface MetadataRules {
  /** True for a metadata document. Its private-use redirect URIs are skipped, because it cannot own a scheme. */
  readonly isDocument: boolean
  /** True when the client has a secret. A web client then keeps the redirect rules of its type. */
  readonly isConfidential: boolean
}

/** Throws OAuthError invalid_client_metadata or invalid_redirect_uri. */
export function readClientMetadata(
  metadata: ClientMetadataDocument,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
  rules: MetadataRules,
): ClientTraits {
  const declaredType = readApplicationType(metadata)
  const redirectUris = readRedirectUris(metadata, declaredType, rules)
  // Some desktop clients register as web. Their redirect URIs show that they are native.
  const applicationType = redirectUris.some(isUnownedRedirect) ? 'native' : declaredType
  const grantTypes = narrowed(metadata, 'grant_types', grants, 'authorization_code')
  narrowed(metadata, 'response_types', ['code'], 'code')
  const name = shortText(metadata, 'client_name', 256, hiddenInLine)
  const uri = shortText(metadata, 'client_uri', 2048)
  const softwareId = shortText(metadata, 'software_id', 256)
  const softwareVersion = shortText(metadata, 'software_version', 256)
  return {
    redirectUris,
    // A client that is registered for the code grant always gets to refresh when the scope allows it.
    grantTypes: isAbsentList(metadata['grant_types']) ? grants : grantTypes,
    scopes: readScopes(metadata, config, { refreshing: grantTypes.includes('refresh_token') }),
    applicationType,
    ...(name === undefined ? {} : { name }),
    ...(uri === undefined ? {} : { uri }),
    ...(softwareId === undefined ? {} : { softwareId }),
    ...(softwareVersion === undefined ? {} : { softwareVersion }),
  }
}

function refuse(text: string): OAuthError {
  return new OAuthError('invalid_client_metadata', text)
}

/** Absent or unknown means native: MCP clients are installed clients unless they declare `web`. */
function readApplicationType(metadata: ClientMetadataDocument): 'native' | 'web' {
  const value = metadata['application_type'] ?? 'native'
  if (typeof value !== 'string') throw refuse('application_type must be native or web')
  return value === 'web' ? 'web' : 'native'
}

function readRedirectUris(
  metadata: ClientMetadataDocument,
  declaredType: 'native' | 'web',
  { isDocument, isConfidential }: MetadataRules,
): readonly string[] {
  const fail = (text: string): OAuthError => new OAuthError('invalid_redirect_uri', text)
  const uris = metadata['redirect_uris']
  if (!Array.isArray(uris) || uris.length === 0)
    throw fail('redirect_uris must be a list with at least one URI')
  if (uris.length > maxRedirects) throw fail(`redirect_uris must have at most ${maxRedirects} entries`)
  const applicationType = isConfidential ? declaredType : 'native'
  const accepted = uris.flatMap((uri: unknown, index) => {
    if (typeof uri !== 'string') throw fail(`redirect_uris[${index}] must be a string`)
    if (isDocument && usesPrivateScheme(uri)) return []
    const problem = redirectUriViolation(uri, applicationType)
    if (problem !== undefined) throw fail(`redirect_uris[${index}] ${problem}`)
    return [uri]
  })
  if (accepted.length === 0)
    throw fail('redirect_uris must contain an https URI, or an http URI with a loopback address')
  return accepted
}

/** An empty list is treated as absent, as null is. */
function isAbsentList(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

/** The supported ones of a list; it is fine to ask for more, but the needed one must be there. */
function narrowed(
  metadata: ClientMetadataDocument,
  member: string,
  supported: readonly string[],
  needed: string,
): readonly string[] {
  const value = metadata[member]
  if (isAbsentList(value)) return [needed]
  if (!Array.isArray(value) || !value.every((item): item is string => typeof item === 'string')) {
    throw refuse(`${member} must be a list of strings`)
  }
  const usable = supported.filter((item) => value.includes(item))
  if (!usable.includes(needed)) throw refuse(`${member} must contain ${needed}`)
  return usable
}

/**
 * Reads `scope`, which is a string, or a list in the requests of some clients. Adds offline_access for a client that
 * registers the grant type refresh_token: clients register the scopes of the protected resource, which do not include
 * offline_access, and add it to the authorization request.
 * Source: behaviour of public MCP clients; RFC 7591 section 3.2.1.
 */
function readScopes(
  metadata: ClientMetadataDocument,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
  { refreshing }: { readonly refreshing: boolean },
): readonly string[] {
  const value = metadata['scope']
  let requested: readonly string[] | undefined
  if (typeof value === 'string') requested = parseScope(value)
  else if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) {
    requested = parseScope(value.join(' '))
  } else if (value !== undefined && value !== null) throw refuse('scope must be a string')
  const scopes = clientScopes(requested, config)
  const addsOffline = refreshing && config.scopesSupported.includes(offlineAccess)
  return addsOffline && !scopes.includes(offlineAccess) ? [...scopes, offlineAccess] : scopes
}

/** `hidden`: the characters that are refused. A name is for users and may have joiners that its script needs. */
function shortText(
  metadata: ClientMetadataDocument,
  member: string,
  max: number,
  hidden = hiddenAnywhere,
): string | undefined {
  const value = metadata[member]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string' || value.length > max) {
    throw refuse(`${member} must be a string of at most ${max} characters`)
  }
  if (value.search(hidden) >= 0) {
    throw refuse(`${member} must not contain control characters or invisible formatting characters`)
  }
  return value
}
