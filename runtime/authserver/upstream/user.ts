/**
 * Maps a provider's subject to a user id. The id is derived from the issuer, provider and subject, so it is the same on
 * every replica and after every restart. No user records are stored, so erasing a user only requires erasing their
 * sessions and consents. Renaming a provider or changing its subjectClaim changes the id of every user.
 * Source: docs/reference/specification/external-auth.md#oidcConfig, oidcConfig.subjectClaim ("re-keys existing users");
 * RFC 9562 section 5.8 (UUID version 8).
 */
import { createHash } from 'node:crypto'
import { compoundKey } from '../model/identifiers.ts'
import type { User } from '../model/records.ts'
import type { Identity } from './upstream.ts'

export function userOf(
  issuer: string,
  { provider, identity }: { readonly provider: string; readonly identity: Identity },
  nowSec: number,
): User {
  const { synthesized, subject, name, email, authTimeSec = nowSec } = identity
  return { userId: synthesized ? subject : makeUserId(issuer, provider, subject), name, email, authTimeSec }
}

/** True for a subject that was derived from an access token. */
export function isSynthesized(userId: string): boolean {
  return userId.startsWith('tk-')
}

/** Returns a UUID derived from the SHA-256 of the three parts. */
export function makeUserId(issuer: string, provider: string, subject: string): string {
  const digest = createHash('sha256')
    .update(compoundKey(issuer, provider, subject))
    .digest()
  const bytes = digest.subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
