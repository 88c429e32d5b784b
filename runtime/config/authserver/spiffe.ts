/**
 * Converts clients that authenticate with JWT-SVIDs to declared clients.
 *
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer; draft-ietf-oauth-spiffe-client-auth.
 */
import { type AuthServerFile, parseDuration, spiffeViolations } from '../../../schemas/index.ts'
import type { DeclaredClientSettings } from './settings.ts'

const tokenMs = 15 * 60_000

/** Returns no client for an unknown trust domain, which `spiffeFileViolations` reports. */
export function spiffeClientsOf({
  inboundGrants,
  spiffeTrustDomains = [],
  allowedAudiences,
}: AuthServerFile): readonly DeclaredClientSettings[] {
  return (inboundGrants?.spiffeClientAuth ?? []).flatMap((auth) => {
    const domain = spiffeTrustDomains.find(({ name }) => name === auth.trustDomainRef)
    if (!domain) return []
    const { trustDomain, bundlePath } = domain
    const { clientId, scopes, principalPattern, maxAssertionAge, replay } = auth
    const maxAgeMs = parseDuration(maxAssertionAge)
    return {
      clientId,
      scopes,
      signingAlg: 'ES256',
      resources: auth.resources ?? allowedAudiences,
      tokenMs,
      spiffe: { trustDomain, bundlePath, principalPattern, maxAgeMs, replay },
    }
  })
}

/** Returns one sentence per error in the trust domains and the clients that refer to them. */
export function spiffeFileViolations(file: AuthServerFile): readonly string[] {
  return spiffeViolations(file).map(({ path, message }) => `${path} ${message}`)
}
