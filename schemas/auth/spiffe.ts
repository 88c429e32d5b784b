/**
 * Rules for SPIFFE trust domains and for the clients whose workloads they identify. Admission and the runtime check the
 * same rules.
 * Source: SPIFFE-ID sections 2.1 to 2.3; draft-ietf-oauth-spiffe-client-auth.
 */
import type { SpiffeClientAuth } from '../generated/types.ts'
import type { Violation } from '../validation/violations.ts'

interface SpiffeSettings {
  readonly clients?: readonly { readonly clientId: string }[] | undefined
  readonly spiffeTrustDomains?: readonly { readonly name: string; readonly trustDomain: string }[] | undefined
  readonly inboundGrants?: { readonly spiffeClientAuth?: readonly SpiffeClientAuth[] | undefined } | undefined
}

const anyPath = '/*'
const maxIdLength = 2048

/** True for a valid SPIFFE ID with a path. */
export function isSpiffeId(id: string): boolean {
  return id.length <= maxIdLength && /^spiffe:\/\/[a-z0-9._-]{1,255}(\/[\w.-]+)+$/.test(id) && !hasDots(id)
}

/** Relative segments are not allowed in a SPIFFE ID. */
function hasDots(id: string): boolean {
  return id.split('/').some((segment, index) => index > 2 && /^\.{1,2}$/.test(segment))
}

/** True when the pattern equals the ID, or is a prefix of the ID that ends with `/*`. */
export function matchesPrincipal(pattern: string, id: string): boolean {
  return pattern.endsWith(anyPath) ? id.startsWith(pattern.slice(0, -1)) : id === pattern
}

/** Returns every violation in the trust domains and in the clients that refer to them. */
export function spiffeViolations({
  clients = [],
  spiffeTrustDomains: domains = [],
  inboundGrants,
}: SpiffeSettings): readonly Violation[] {
  const auths = inboundGrants?.spiffeClientAuth ?? []
  return [
    ...domains.flatMap(({ name, trustDomain }, index) => {
      const at = `spiffeTrustDomains[${index}]`
      const first = domains.findIndex((other) => other.trustDomain === trustDomain)
      return [
        ...(first === index
          ? []
          : [{ path: `${at}.trustDomain`, message: `is already used by spiffeTrustDomains[${first}]` }]),
        ...(auths.some(({ trustDomainRef }) => trustDomainRef === name)
          ? []
          : [{ path: `${at}.name`, message: 'no trustDomainRef refers to this trust domain' }]),
      ]
    }),
    ...auths.flatMap(({ trustDomainRef, principalPattern, clientId }, index) => {
      const at = `inboundGrants.spiffeClientAuth[${index}]`
      const domain = domains.find(({ name }) => name === trustDomainRef)
      if (!domain)
        return [{ path: `${at}.trustDomainRef`, message: 'must be the name of one of spiffeTrustDomains' }]
      const overlap = auths.findIndex((other) => doOverlap(other.principalPattern, principalPattern))
      return [
        ...(principalPattern.startsWith(`spiffe://${domain.trustDomain}/`)
          ? []
          : [
              {
                path: `${at}.principalPattern`,
                message: `must begin with spiffe://${domain.trustDomain}/, the trust domain ${trustDomainRef}`,
              },
            ]),
        ...(hasDots(principalPattern)
          ? [{ path: `${at}.principalPattern`, message: 'must not contain the segments . and ..' }]
          : []),
        ...(overlap === index
          ? []
          : [
              {
                path: `${at}.principalPattern`,
                message: `overlaps with inboundGrants.spiffeClientAuth[${overlap}]`,
              },
            ]),
        ...(clients.some((client) => client.clientId === clientId)
          ? [{ path: `${at}.clientId`, message: 'is already used in clients' }]
          : []),
      ]
    }),
  ]
}

function doOverlap(a: string, b: string): boolean {
  const [first, second] = [a, b].map((pattern) => pattern.replace(/\*$/, ''))
  return matchesPrincipal(a, second ?? '') || matchesPrincipal(b, first ?? '')
}
