/**
 * Issuers whose tokens the authorization server accepts as grants, and the subjects that get tokens.
 *
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer; RFC 7523 section 2.1.
 */
import {
  type AuthServerFile,
  defaultAssertionAge,
  type JwtBearerIssuerPolicy,
  parseDuration,
  type TokenExchangeIssuerPolicy,
  type TrustedIssuerFile,
  trustViolations,
} from '../../../schemas/index.ts'

/** Issuer whose key set verifies assertions. */
export type TrustedIssuerSettings = TrustedIssuerFile

export interface SubjectBindingSettings {
  /** Binds a subject. Exactly one of `subject` and `matcher` (CEL) is set. */
  readonly subject?: string
  readonly matcher?: string
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
}

/** Rules for accepting an issuer's assertions with the jwt-bearer grant. */
export interface AssertionPolicySettings {
  readonly issuer: TrustedIssuerSettings
  readonly types: JwtBearerIssuerPolicy['acceptedAssertionTypes']
  /** Only for `jwt_bearer`, like `acceptedAudiences`. */
  readonly maxAgeMs: number
  readonly replay: JwtBearerIssuerPolicy['replay']
  /** Accepted audiences. Default: the issuer and the token endpoint of this server. */
  readonly acceptedAudiences?: readonly string[]
  /** If absent, every subject of the issuer is accepted, which is possible only for `id_jag`. */
  readonly bindings?: readonly SubjectBindingSettings[]
}

/** Rules for accepting an issuer's tokens for token exchange. */
export interface ExchangePolicySettings extends Omit<TokenExchangeIssuerPolicy, 'issuerRef'> {
  readonly issuer: TrustedIssuerSettings
}

/** Returns one policy for each issuer whose tokens can be exchanged. */
export function exchangePoliciesOf({
  trustedIssuers = [],
  inboundGrants,
}: AuthServerFile): readonly ExchangePolicySettings[] {
  return (inboundGrants?.tokenExchange?.issuerPolicies ?? []).flatMap(({ issuerRef, ...policy }) => {
    const issuer = trustedIssuers.find(({ name }) => name === issuerRef)
    return issuer ? { ...policy, issuer } : []
  })
}

/** Returns one policy for each reference to a trusted issuer. */
export function assertionPoliciesOf({
  trustedIssuers = [],
  inboundGrants,
  allowedAudiences,
}: AuthServerFile): readonly AssertionPolicySettings[] {
  return (inboundGrants?.jwtBearer?.issuerPolicies ?? []).flatMap((policy) => {
    const issuer = trustedIssuers.find(({ name }) => name === policy.issuerRef)
    if (!issuer) return []
    const { acceptedAssertionTypes: types, replay, acceptedAudiences, subjectBindings } = policy
    return {
      issuer,
      types,
      maxAgeMs: parseDuration(policy.maxAssertionAge ?? defaultAssertionAge(issuer.preset)),
      replay,
      ...(acceptedAudiences === undefined ? {} : { acceptedAudiences }),
      ...(subjectBindings && {
        bindings: subjectBindings.map(({ allowedResources = allowedAudiences, ...binding }) => ({
          ...binding,
          resources: allowedResources,
        })),
      }),
    }
  })
}

/** Returns the files that the trusted issuers and trust domains need. */
export function trustFiles({
  trustedIssuers = [],
  spiffeTrustDomains = [],
}: AuthServerFile): readonly { readonly field: string; readonly path: string }[] {
  const issuerFiles = trustedIssuers.flatMap(({ name, caBundlePath, jwksAuthTokenPath }) =>
    Object.entries({ caBundlePath, jwksAuthTokenPath }).flatMap(([member, path]) =>
      path === undefined ? [] : [{ field: `trustedIssuers[${name}].${member}`, path }],
    ),
  )
  const bundles = spiffeTrustDomains.map(({ name, bundlePath }) => ({
    field: `spiffeTrustDomains[${name}].bundlePath`,
    path: bundlePath,
  }))
  return [...issuerFiles, ...bundles]
}

/** Returns one sentence per error in the trusted issuers and the policies that refer to them. */
export function trustedIssuerViolations(file: AuthServerFile): readonly string[] {
  const { allowedAudiences, inboundGrants } = file
  const policies = inboundGrants?.jwtBearer?.issuerPolicies ?? []
  return [
    ...trustViolations(file).map(({ path, message }) => `${path} ${message}`),
    ...policies.flatMap(({ acceptedAudiences = [], subjectBindings = [] }, index) => {
      const at = `inboundGrants.jwtBearer.issuerPolicies[${index}]`
      return [
        // Rejects a resource as an audience. Otherwise, an access token for a resource would also be a grant.
        ...acceptedAudiences
          .filter((audience) => allowedAudiences.includes(audience))
          .map((audience) => `${at}.acceptedAudiences "${audience}" must not be one of allowedAudiences`),
        ...subjectBindings.flatMap(({ allowedResources = [] }, position) =>
          allowedResources
            .filter((resource) => !allowedAudiences.includes(resource))
            .map(
              (resource) =>
                `${at}.subjectBindings[${position}].allowedResources "${resource}" is not in allowedAudiences`,
            ),
        ),
      ]
    }),
  ]
}
