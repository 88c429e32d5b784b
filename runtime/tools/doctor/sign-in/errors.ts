/** Maps errors from an authorization server's token endpoint and redirects to codes. Source: RFC 6749 section 5.2. */
import { type OAuthClientError, tokenRefusal } from '../../../oauth/index.ts'
import type { RemoteFacts } from '../remote/facts.ts'
import type { FindingCode } from '../report/codes.ts'
import { failed, type CheckOutcome } from '../report/finding.ts'

/** Returns the outcome for error text that contains one of the provider's known codes. */
export function knownError(
  { profile }: RemoteFacts,
  description: string | undefined,
): CheckOutcome | undefined {
  if (description === undefined) return undefined
  const known = profile?.errors?.find(({ match }) => match.test(description))
  return known === undefined ? undefined : failed(known.code, known.cause, { fix: known.fix })
}

export function speaksOfPkce(description: string | undefined): boolean {
  return /pkce|code[_ ]?(?:verifier|challenge)/i.test(description ?? '')
}

/** Returns the server's error on one line. */
export function errorText({ message, description }: OAuthClientError): string {
  return description === undefined ? message : `${message}: ${description}`
}

/** Returns the outcome for a failed code exchange. */
export function codeFailure(error: OAuthClientError, facts: RemoteFacts): CheckOutcome {
  return knownError(facts, error.description) ?? failed(codeOf(error), errorText(error))
}

function codeOf(failure: OAuthClientError): FindingCode {
  const { kind, error, description, responseStatus } = failure
  if (tokenRefusal(failure) === 'temporary') return 'code.unreachable'
  if (kind === 'absent') return 'code.unreachable'
  if (error === 'invalid_client' || (error === undefined && responseStatus === 401)) return 'code.client'
  if (kind === 'protocol') return 'code.response'
  if (error === 'invalid_target') return 'client.target'
  if (error === 'invalid_scope') return 'client.scope'
  if (speaksOfPkce(description)) return 'code.pkce'
  return /redirect[ _-]?ur[il]/i.test(description ?? '') ? 'client.redirect' : 'code.refused'
}
