/**
 * A JWT that a client presents as its grant (jwt-bearer): a token that the platform issued for the workload, or an
 * identity assertion. Only the authorization server verifies its signature.
 * Source: RFC 7523 section 2.1; draft-ietf-oauth-rfc7523bis-10 section 4.
 */
import { decodeJwt } from 'jose'
import { invalidConfig } from '../../../schemas/index.ts'
import { OAuthClientError } from '../client-error.ts'
import type { ServerMetadata } from '../metadata/server-metadata.ts'

/** Authorization servers reject longer assertions. */
const maxLength = 16_384

/** Returns the JWT in `text`. Throws INVALID_CONFIG with `field`, never with the text. */
export function readGrantAssertion(text: string, field: string): string {
  const assertion = text.trim()
  if (assertion.length > maxLength) throw invalidConfig(`${field}: the JWT is longer than 16 KiB`)
  if (audiencesOf(assertion) === undefined) throw invalidConfig(`${field}: expected a signed JWT`)
  return assertion
}

/**
 * Throws OAuthClientError `protocol` unless every audience of the assertion is the server's issuer or token endpoint.
 * Otherwise, a malicious MCP server could direct the client to its own authorization server, which could then present
 * the assertion to the intended authorization server.
 */
export function checkGrantAudience(
  assertion: string,
  server: Pick<ServerMetadata, 'issuer' | 'token_endpoint'>,
): void {
  const audiences = audiencesOf(assertion) ?? []
  const accepted = new Set([server.issuer, server.token_endpoint])
  if (audiences.length > 0 && audiences.every((audience) => accepted.has(audience))) return
  throw new OAuthClientError(
    'protocol',
    "the assertion's audience is not the MCP server's authorization server. Request a token " +
      'with the issuer as audience, or configure the issuer',
  )
}

/** Returns undefined for text that is not a signed JWT. */
function audiencesOf(assertion: string): readonly string[] | undefined {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(assertion)) return undefined
  try {
    const { aud = [] } = decodeJwt(assertion)
    return typeof aud === 'string' ? [aud] : aud
  } catch {
    return undefined
  }
}
