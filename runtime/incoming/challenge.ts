/**
 * The WWW-Authenticate challenge that is sent with every 401. It lets an MCP client find the authorization server.
 *
 * A request without credentials gets no error code. All text is fixed and contains no details from the verifier.
 * Source: RFC 6750 section 3, RFC 9728 section 5.1, MCP 2025-11-25 authorization.
 */
import { formatChallenge, resourceMetadataUrl } from '../oauth/index.ts'
import { type OidcConfig, resourceUrl } from './config.ts'

export interface ChallengeError {
  readonly error: string
  readonly description?: string | undefined
  /** Scopes that would be sufficient, used instead of the configured scopes (insufficient_scope). */
  readonly scopes?: readonly string[] | undefined
}

/**
 * Returns the challenge. The parameters are in this order: realm, resource_metadata, scope, error, error_description.
 */
export function challengeFor(config: OidcConfig, failure?: ChallengeError): string {
  const resource = resourceUrl(config)
  const scopes = failure?.scopes ?? config.scopes
  return formatChallenge('Bearer', [
    ['realm', config.issuer],
    ['resource_metadata', resource === undefined ? undefined : resourceMetadataUrl(resource)],
    ['scope', scopes === undefined || scopes.length === 0 ? undefined : scopes.join(' ')],
    ['error', failure?.error],
    ['error_description', failure?.description],
  ])
}
