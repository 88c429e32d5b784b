/**
 * The WWW-Authenticate challenge that is sent with every 401. The challenge lets an MCP client find the authorization
 * server.
 *
 * The challenge for a request without credentials contains no error code. All text is fixed and contains no details
 * from the verifier.
 * Source: RFC 6750 section 3, RFC 9449 section 7.1, RFC 9728 section 5.1, MCP 2025-11-25 authorization.
 */
import { formatChallenge, proofAlgorithms, resourceMetadataUrl } from '../oauth/index.ts'
import { acceptsProofs, type OidcConfig, resourceUrl } from './config.ts'

export interface ChallengeError {
  readonly error: string
  readonly description?: string | undefined
  /** Scopes that would be sufficient, used instead of the configured scopes (insufficient_scope). */
  readonly scopes?: readonly string[] | undefined
  /** Scheme of the rejected request. Default: Bearer, if this server accepts it. */
  readonly scheme?: AuthScheme | undefined
}

export type AuthScheme = 'Bearer' | 'DPoP'

/**
 * Returns one challenge for each scheme that this server accepts. The parameters are in this order: realm,
 * resource_metadata, scope, error, error_description, algs. The error is in the challenge for the request's scheme.
 */
export function challengeFor(config: OidcConfig, failure?: ChallengeError): string {
  const resource = resourceUrl(config)
  const scopes = failure?.scopes ?? config.scopes
  const accepted = acceptedSchemes(config)
  const failed = accepted.find((scheme) => scheme === failure?.scheme) ?? accepted[0]
  const challenges = accepted.map((scheme) => {
    const own = scheme === failed ? failure : undefined
    return formatChallenge(scheme, [
      ['realm', config.issuer],
      ['resource_metadata', resource === undefined ? undefined : resourceMetadataUrl(resource)],
      ['scope', scopes === undefined || scopes.length === 0 ? undefined : scopes.join(' ')],
      ['error', own?.error],
      ['error_description', own?.description],
      ['algs', scheme === 'DPoP' ? proofAlgorithms.join(' ') : undefined],
    ])
  })
  return challenges.join(', ')
}

function acceptedSchemes(config: OidcConfig): readonly AuthScheme[] {
  if (config.dpop?.mode === 'required') return ['DPoP']
  return acceptsProofs(config) ? ['Bearer', 'DPoP'] : ['Bearer']
}
