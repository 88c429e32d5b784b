/**
 * Finds the metadata of an authorization server from its issuer.
 *
 * Asks the well-known documents in MCP's order and takes the first that is a valid document of exactly this issuer
 * (string comparison, no normalisation: RFC 8414 section 3.3, RFC 9207 section 2.4). Does not check whether the server
 * offers what a flow needs. Source: RFC 8414, OpenID Connect Discovery 1.0, MCP 2025-11-25 authorization.
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

/** RFC 8414 and OIDC members by their own names. */
export type ServerMetadata = AuthorizationServer

export interface ServerDiscoveryOptions extends OAuthCallOptions {
  /** Lifts the https rule for issuer and endpoints. */
  readonly allowHttp?: boolean | undefined
  /** A member that is taken from a later document of the same issuer when the first lacks it. */
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

const what = 'the metadata document of the authorization server'

/**
 * Rejects with OAuthClientError: `protocol` when a document names another issuer or is malformed, `unreachable` when the
 * server did not answer properly, `absent` when it has none of the documents.
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
      found = found === undefined ? metadata : fillFrom(found, metadata, options.need)
      if (options.need === undefined || found[options.need] !== undefined) return found
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      violations.push(error)
      // No response at all: the other documents live on the same host.
      if (error.kind === 'unreachable' && error.responseStatus === undefined) break
    }
  }
  if (found !== undefined) return found
  throw worst(violations)
}

/** Reads one document and checks that it is the issuer's own. */
export async function fetchServerMetadata(
  url: string,
  issuer: string,
  options: ServerDiscoveryOptions,
): Promise<ServerMetadata> {
  const response = await send(what, url, { headers: { accept: 'application/json' } }, options)
  return checkServerMetadata(await readJson(what, response), issuer, options.allowHttp)
}

/** The document as metadata; throws OAuthClientError `protocol` when it is another issuer's or malformed. */
export function checkServerMetadata(body: JsonRecord, issuer: string, allowHttp = false): ServerMetadata {
  const named = requiredString(what, body, 'issuer')
  if (named !== issuer) {
    throw new OAuthClientError('protocol', `${what} names another issuer`, {
      cause: new Error(`expected issuer ${issuer}, the document says ${named.slice(0, 300)}`),
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
 * Gatehouse's own member: maps each ignored endpoint to the reason. An invalid endpoint that no flow uses must not
 * cause a failure.
 */
const unusableName = 'gatehouse_unusable_endpoints'

/**
 * Returns the error for an endpoint that a flow needs and the metadata does not contain, or contains in an unusable
 * form.
 */
export function missingEndpoint(server: JsonRecord, name: (typeof endpoints)[number]): OAuthClientError {
  const unusable: unknown = server[unusableName]
  const problem = isFields(unusable) ? unusable[name] : undefined
  const text =
    typeof problem === 'string'
      ? `${name} of the authorization server ${problem}`
      : `the authorization server has no ${name}`
  return new OAuthClientError('protocol', text)
}

/** The members that we use have been checked one by one. */
function isMetadata(body: unknown): body is ServerMetadata {
  return isFields(body) && typeof body['issuer'] === 'string'
}

/** Returns why an endpoint cannot be used: '' when it is absent, undefined when it is valid. */
function endpointProblem(value: unknown, allowHttp: boolean): string | undefined {
  if (value === undefined || value === null || value === '') return ''
  return typeof value === 'string' ? endpointViolation(value, allowHttp) : 'must be a string'
}

function fillFrom(
  first: ServerMetadata,
  other: ServerMetadata,
  need: ServerDiscoveryOptions['need'],
): ServerMetadata {
  return need === undefined || other[need] === undefined ? first : { ...first, [need]: other[need] }
}

/** The error that says most: a wrong document before an unreachable one before an absent one. */
function worst(violations: readonly OAuthClientError[]): OAuthClientError {
  const rank = { protocol: 0, unreachable: 1, refused: 2, absent: 3 }
  const [first] = violations.toSorted((a, b) => rank[a.kind] - rank[b.kind])
  return first ?? new OAuthClientError('absent', `${what} does not exist`)
}

/**
 * Endpoints of a server without any metadata, by the old convention. Only for MCP servers of revision 2025-03-26 that
 * publish no resource document either.
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

/** Metadata for endpoints that an operator typed. `issuer` is only a name then: nothing is compared with it. */
export function typedServer(authorizeUrl: string | undefined, tokenUrl: string): ServerMetadata {
  return {
    issuer: new URL(tokenUrl).origin,
    token_endpoint: tokenUrl,
    ...(authorizeUrl === undefined ? {} : { authorization_endpoint: authorizeUrl }),
  }
}

/** True when the server says that it supports PKCE with S256; MCP clients must not go on without it. */
export function supportsS256(server: ServerMetadata): boolean {
  return server.code_challenge_methods_supported?.includes('S256') ?? false
}
