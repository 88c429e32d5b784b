/**
 * Who a provider's subject is here: an id that is the same on every replica and after every restart, because it follows
 * from issuer, provider and subject. Nothing about a user is stored to find them again, so nothing must be erased but
 * their sessions and consents. Renaming a provider or changing its subjectClaim makes other users of everybody.
 * Source: docs/specification/external-auth.md#oidcConfig, oidcConfig.subjectClaim ("re-keys existing users"); RFC 9562 section 5.8 (UUID version 8).
 */
import { createHash } from 'node:crypto'
import type { User } from '../model/records.ts'
import type { Identity } from './upstream.ts'
import { compoundKey } from '../model/identifiers.ts'

export function userOf(issuer: string, provider: string, identity: Identity, nowSec: number): User {
  return {
    userId: identity.synthesized ? identity.subject : userId(issuer, provider, identity.subject),
    authTimeSec: identity.authTimeSec ?? nowSec,
    ...(identity.name === undefined ? {} : { name: identity.name }),
    ...(identity.email === undefined ? {} : { email: identity.email }),
  }
}

/** True for a subject that was made from an access token. */
export function isSynthesized(userId: string): boolean {
  return userId.startsWith('tk-')
}

/** A UUID from SHA-256 over the three parts. */
export function userId(issuer: string, provider: string, subject: string): string {
  const bytes = createHash('sha256')
    .update(compoundKey(issuer, provider, subject))
    .digest()
    .subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
