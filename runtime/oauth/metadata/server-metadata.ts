/**
 * Finds an authorization server's metadata from its issuer.
 *
 * Tries the well-known documents in the order that MCP defines, and uses the first valid document with exactly this
 * issuer. Issuers are compared as strings without normalization (RFC 8414 section 3.3, RFC 9207 section 2.4). Does not
 * check whether the server supports the features that a flow requires.
 * Source: RFC 8414, OpenID Connect Discovery 1.0, MCP 2025-11-25 authorization.
 */
import { isFields } from '../../../schemas/index.ts'
import type { AuthorizationServer } from 'oauth4webapi'
import {
  type OAuthCallOptions,
  type JsonRecord,
  optionalStrings,
  readJson,
  requiredString,
  send,
} from '../call.ts'
import { OAuthClientError } from '../client-error.ts'
import { endpointViolation, serverMetadataUrls } from '../urls.ts'

/** Members have the names that RFC 8414 and OIDC define. */
export type ServerMetadata = AuthorizationServer

export interface ServerDiscoveryOptions extends OAuthCallOptions {
  /** Lifts the https rule for the issuer and the endpoints. */
  readonly allowHttp?: boolean | undefined
  /** A member to read from the same issuer's later documents when the first document lacks it. */
  readonly need?: 'registration_endpoint' | 'jwks_uri' | 'introspection_endpoint' | undefined
}

const endpoints = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'introspection_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
] as const

const lists = [
  'scopes_supported',
  'response_types_supported',
  'grant_types_supported',
  'code_challenge_methods_supported',
  'token_endpoint_auth_methods_supported',
  'introspection_endpoint_auth_methods_supported',
  'id_token_signing_alg_values_supported',
] as const

const what = 'the authorization server’s metadata document'

/**
 * Returns the metadata. Rejects with OAuthClientError: `protocol` when a document has a different issuer or is
 * malformed, `unreachable` when the server did not respond properly, and `absent` when no document exists.
 */
export async function discoverServer(
  issuer: string,
  options: ServerDiscoveryOptions,
): Promise<ServerMetadata> {
  const problem = endpointViolation(issuer, options.allowHttp)
  if (problem !== undefined) throw new OAuthClientError('protocol', `the issuer URL ${problem}`)
  let found: ServerMetadata | undefined
  const violations: OAuthClientError[] = []
  for (const url of serverMetadataUrls(issuer)) {
    try {
      const metadata = await fetchServerMetadata(url, issuer, options)
      found = found === undefined ? metadata : addMissingMember(found, metadata, options.need)
      if (options.need === undefined || found[options.need] !== undefined) return found
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      violations.push(error)
      // If there was no response at all, stop: the other documents are on the same host.
      if (error.kind === 'unreachable' && error.responseStatus === undefined) break
    }
  }
  if (found !== undefined) return found
  throw mostInformative(violations)
}

/** Fetches one document and checks that it belongs to the issuer. */
export async function fetchServerMetadata(
  url: string,
  issuer: string,
  options: ServerDiscoveryOptions,
): Promise<ServerMetadata> {
  const response = await send(what, url, { headers: { accept: 'application/json' } }, options)
  return checkServerMetadata(await readJson(what, response), issuer, options.allowHttp)
}

/**
 * Validates a document and returns it as server metadata. Throws OAuthClientError `protocol` when the document belongs
 * to another issuer or is malformed.
 */
export function checkServerMetadata(body: JsonRecord, issuer: string, allowHttp = false): ServerMetadata {
  const named = requiredString(what, body, 'issuer')
  if (named !== issuer) {
    throw new OAuthClientError('protocol', `${what} names another issuer`, {
      cause: new Error(`expected issuer ${issuer}, found ${named.slice(0, 300)}`),
    })
  }
  const metadata: Record<string, unknown> = { ...body }
  delete metadata[unusableName]
  const unusable: Record<string, string> = {}
  for (const name of endpoints) {
    const problem = endpointProblem(body[name], allowHttp)
    if (problem === undefined) continue
    delete metadata[name]
    if (problem !== '') unusable[name] = problem
  }
  for (const name of lists) if (optionalStrings(what, body, name) === undefined) delete metadata[name]
  const checked = Object.keys(unusable).length === 0 ? metadata : { ...metadata, [unusableName]: unusable }
  if (isMetadata(checked)) return checked
  throw new OAuthClientError('protocol', `${what} is malformed`)
}

/**
 * Gatehouse-specific member: maps each ignored endpoint to the reason. An invalid endpoint that no flow uses must not
 * cause a failure.
 */
const unusableName = 'gatehouse_unusable_endpoints'

/** Returns the error for a required endpoint that the metadata omits or contains in an unusable form. */
export function missingEndpoint(server: JsonRecord, name: (typeof endpoints)[number]): OAuthClientError {
  const unusable: unknown = server[unusableName]
  const problem = isFields(unusable) ? unusable[name] : undefined
  const text =
    typeof problem === 'string'
      ? `${name} of the authorization server ${problem}`
      : `the authorization server has no ${name}`
  return new OAuthClientError('protocol', text)
}

/** The caller has already checked each member in use. */
function isMetadata(body: unknown): body is ServerMetadata {
  return isFields(body) && typeof body['issuer'] === 'string'
}

/** Returns the reason why an endpoint cannot be used: '' when it is absent, undefined when it is valid. */
function endpointProblem(value: unknown, allowHttp: boolean): string | undefined {
  if (value === undefined || value === null || value === '') return ''
  return typeof value === 'string' ? endpointViolation(value, allowHttp) : 'must be a string'
}

function addMissingMember(
  first: ServerMetadata,
  other: ServerMetadata,
  need: ServerDiscoveryOptions['need'],
): ServerMetadata {
  return need === undefined || other[need] === undefined ? first : { ...first, [need]: other[need] }
}

/**
 * Returns the most informative error: a wrong document takes precedence over an unreachable document, which takes
 * precedence over an absent document.
 */
function mostInformative(violations: readonly OAuthClientError[]): OAuthClientError {
  const rank = { protocol: 0, unreachable: 1, refused: 2, absent: 3 }
  const [first] = violations.toSorted((a, b) => rank[a.kind] - rank[b.kind])
  return first ?? new OAuthClientError('absent', `${what} does not exist`)
}

/**
 * Returns the conventional endpoints for a server without metadata. Only for MCP servers that use revision 2025-03-26
 * and publish no resource document either.
 */
export function conventionalServer(origin: string): ServerMetadata {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ['S256'],
  }
}

/**
 * Returns metadata for endpoints from the configuration. In this case, `issuer` is only a name and is never compared.
 */
export function typedServer(authorizeUrl: string | undefined, tokenUrl: string): ServerMetadata {
  return {
    issuer: new URL(tokenUrl).origin,
    token_endpoint: tokenUrl,
    ...(authorizeUrl === undefined ? {} : { authorization_endpoint: authorizeUrl }),
  }
}

/** True when the server advertises PKCE with S256, which MCP clients require. */
export function supportsS256(server: ServerMetadata): boolean {
  return server.code_challenge_methods_supported?.includes('S256') ?? false
}

/** Adds the scope for a refresh token, if the server supports it. Source: OpenID Connect Core section 11. */
export function withOffline(
  scopes: readonly string[],
  server: Pick<ServerMetadata, 'scopes_supported'>,
): readonly string[] {
  const offered = server.scopes_supported?.includes('offline_access') ?? false
  return offered && !scopes.includes('offline_access') ? [...scopes, 'offline_access'] : scopes
}
