/**
 * Reads client metadata, registered (RFC 7591) or fetched (client-id metadata document).
 *
 * RFC 7591 section 3.2.1 lets a server replace metadata. Unsupported grant types are dropped; the request is rejected
 * when no supported type is left. Unknown scopes are dropped; when no supported scope is left, the client gets all
 * supported scopes. A public client with loopback or private-use redirect URIs is native, whatever its application_type
 * is. Redirect URIs are never changed. Private-use URIs in a document are skipped. Display text is the client's own
 * claim. Pages escape this text, mark it as a claim, and never fetch its links.
 * Source: RFC 7591 sections 2 and 3.2.2; draft-ietf-oauth-client-id-metadata-document-02;
 * docs/reference/specification/external-auth.md.
 */
import { hiddenAnywhere, hiddenInLine } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { isUnownedRedirect, redirectUriViolation, usesPrivateScheme } from './redirect-uri.ts'
import { clientScopes, parseScope } from '../model/scopes.ts'

/** Untrusted members, as received. */
export type ClientMetadataDocument = Readonly<Record<string, unknown>>

type ClientTraits = Omit<
  RegisteredClient,
  'id' | 'kind' | 'authMethod' | 'secretHash' | 'managementHash' | 'issuedAtSec' | 'used'
>

const maxRedirects = 10
const offlineAccess = 'offline_access'

interface MetadataRules {
  /**
   * True for a metadata document. Private-use redirect URIs in a document are skipped, because a document cannot own a
   * scheme.
   */
  readonly isDocument: boolean
  /** True when the client has a secret. A web client is then subject to the redirect rules of its type. */
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
  // Some desktop clients register as `web`, although their redirect URIs show that they are native.
  const applicationType = redirectUris.some(isUnownedRedirect) ? 'native' : declaredType
  const grantTypes = readList(metadata, 'grant_types', ['authorization_code', 'refresh_token'])
  readList(metadata, 'response_types', ['code'])
  return {
    redirectUris,
    // If grant_types is absent, a client may also refresh when its scope allows it.
    grantTypes: isAbsentList(metadata['grant_types']) ? [...grantTypes, 'refresh_token'] : grantTypes,
    scopes: readScopes(metadata, config, { canRefresh: grantTypes.includes('refresh_token') }),
    applicationType,
    // A name is shown to users and may contain joiners that its script requires.
    name: readText(metadata, 'client_name', { max: 256, hidden: hiddenInLine }),
    uri: readText(metadata, 'client_uri', { max: 2048 }),
    softwareId: readText(metadata, 'software_id', { max: 256 }),
    softwareVersion: readText(metadata, 'software_version', { max: 256 }),
  }
}

function metadataError(text: string): OAuthError {
  return new OAuthError('invalid_client_metadata', text)
}

/** Absent or unknown means native: MCP clients are installed clients unless they declare `web`. */
function readApplicationType(metadata: ClientMetadataDocument): 'native' | 'web' {
  const value = metadata['application_type'] ?? 'native'
  if (typeof value !== 'string') throw metadataError('application_type must be native or web')
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

/** Like null, an empty list is treated as absent. */
function isAbsentList(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

/** Returns the values of a list that this server supports. The first supported value is the default and is required. */
function readList(
  metadata: ClientMetadataDocument,
  member: string,
  supported: readonly [string, ...string[]],
): readonly string[] {
  const [needed] = supported
  const value = metadata[member]
  if (isAbsentList(value)) return [needed]
  if (!Array.isArray(value) || !value.every((item): item is string => typeof item === 'string')) {
    throw metadataError(`${member} must be a list of strings`)
  }
  const usable = supported.filter((item) => value.includes(item))
  if (!usable.includes(needed)) throw metadataError(`${member} must contain ${needed}`)
  return usable
}

/**
 * Reads `scope`, which is a string, or a list in requests from some clients. Adds offline_access for a client that
 * registers the grant type refresh_token. Clients register the protected resource's scopes, which do not include
 * offline_access, and add it only to the authorization request.
 * Source: behavior of publicly available MCP clients; RFC 7591 section 3.2.1.
 */
function readScopes(
  metadata: ClientMetadataDocument,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
  { canRefresh }: { readonly canRefresh: boolean },
): readonly string[] {
  const value = metadata['scope']
  let requested: readonly string[] | undefined
  if (typeof value === 'string') requested = parseScope(value)
  else if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) {
    requested = parseScope(value.join(' '))
  } else if (value !== undefined && value !== null) throw metadataError('scope must be a string')
  const scopes = clientScopes(requested, config)
  const addsOffline = canRefresh && config.scopesSupported.includes(offlineAccess)
  return addsOffline && !scopes.includes(offlineAccess) ? [...scopes, offlineAccess] : scopes
}

/** Reads text and removes the `hidden` characters. */
function readText(
  metadata: ClientMetadataDocument,
  member: string,
  { max, hidden = hiddenAnywhere }: { readonly max: number; readonly hidden?: RegExp },
): string | undefined {
  const value = metadata[member]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string' || value.length > max) {
    throw metadataError(`${member} must be a string of at most ${max} characters`)
  }
  if (value.search(hidden) >= 0) {
    throw metadataError(`${member} must not contain control characters or invisible formatting characters`)
  }
  return value
}
