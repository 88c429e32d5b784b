/**
 * Exchanges the user's ID token for an identity assertion (ID-JAG) at the user's identity provider. Another
 * authorization server accepts the assertion as a grant.
 *
 * Checks the assertion's kind, type, audience and resource, but not its signature: the assertion came from the provider
 * over TLS, and the authorization server verifies it.
 * Source: draft-ietf-oauth-identity-assertion-authz-grant; RFC 8693; MCP extension "Enterprise-Managed Authorization".
 */
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { OAuthClientError } from '../client-error.ts'
import { tokenExchangeGrant, type TokenRequestOptions, type TokenSet } from '../token.ts'

export const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const identityAssertionType = 'urn:ietf:params:oauth:token-type:id-jag'

/** Rejects with OAuthClientError, whose kind is `protocol` when the provider issued a different kind of token. */
export async function requestIdentityAssertion({
  idToken,
  ...options
}: TokenRequestOptions & {
  readonly idToken: string
  /** Issuer of the authorization server that the assertion is for. */
  readonly audience: string | undefined
  readonly resource?: string | undefined
  readonly scopes?: readonly string[] | undefined
}): Promise<string> {
  const tokens = await tokenExchangeGrant({
    ...options,
    subjectToken: idToken,
    subjectTokenType: idTokenType,
    requestedTokenType: identityAssertionType,
    tokenTypes: ['n_a'],
  })
  checkAssertion(tokens, options.audience, options.resource)
  return tokens.accessToken
}

/** Throws OAuthClientError `protocol` when the provider issued a different kind of token than requested. */
function checkAssertion(tokens: TokenSet, audience: string | undefined, resource: string | undefined): void {
  if (tokens.issuedTokenType !== identityAssertionType || tokens.tokenType !== 'n_a') {
    throw new OAuthClientError(
      'protocol',
      'the token from the identity provider is not an identity assertion',
    )
  }
  const { typ, aud, granted } = readAssertion(tokens.accessToken)
  if (typ !== 'oauth-id-jag+jwt') {
    throw new OAuthClientError('protocol', 'the type of the identity assertion is not oauth-id-jag+jwt')
  }
  if (aud.length !== 1 || aud[0] !== audience) {
    throw new OAuthClientError('protocol', 'the identity assertion has the wrong audience')
  }
  if (resource !== undefined && !granted.includes(resource)) {
    throw new OAuthClientError('protocol', 'the identity assertion does not grant the requested resource')
  }
}

function readAssertion(assertion: string): {
  typ: unknown
  aud: readonly unknown[]
  granted: readonly unknown[]
} {
  try {
    const { typ } = decodeProtectedHeader(assertion)
    const { aud, resource } = decodeJwt(assertion)
    return { typ: typ?.toLowerCase(), aud: toArray(aud), granted: toArray(resource) }
  } catch (error) {
    throw new OAuthClientError('protocol', 'the identity assertion is not a JWT', { cause: error })
  }
}

function toArray(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}
