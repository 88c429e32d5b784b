/** Token responses of upstream providers as a stored record. */
import type { TokenSet } from '../../oauth/index.ts'
import type { UpstreamTokensRecord } from '../model/records.ts'

/**
 * The record of a response. On a refresh `old` lends what the response left out: refresh token (RFC 6749 section 6),
 * ID token and scope.
 */
export function toUpstreamTokens(
  provider: string,
  subject: string,
  tokens: TokenSet,
  nowMs: number,
  old?: UpstreamTokensRecord,
): UpstreamTokensRecord {
  const refreshToken = tokens.refreshToken ?? old?.refreshToken
  const idToken = tokens.idToken ?? old?.idToken
  const scope = tokens.scope ?? old?.scope
  return {
    provider,
    subject,
    accessToken: tokens.accessToken,
    obtainedAtMs: nowMs,
    ...(tokens.expiresAt === undefined ? {} : { expiresAtMs: tokens.expiresAt }),
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(idToken === undefined ? {} : { idToken }),
    ...(scope === undefined ? {} : { scope }),
  }
}
