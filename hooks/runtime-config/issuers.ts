/**
 * Handles `oidcConfigRefs`, the issuers whose tokens a server accepts.
 *
 * The first issuer is the server's own issuer: it sets the resource URL and the scopes, and its subjects stay
 * unchanged. An embedded authorization server is always the first issuer.
 */
import {
  type IssuerReference,
  issuerViolations,
  type MCPOIDCConfig,
  prefixConflicts,
  type RuntimeIssuer,
  type RuntimeOidc,
  type Violation,
} from '../../schemas/index.ts'
import { issuerPart, oidcPart, type OidcTarget } from './oidc.ts'
import { type ConfigPart, failed } from '../sync/conditions.ts'
import type { AnyContext } from '../sync/context.ts'
import { configCalled, configHashOf, oidcCondition } from '../references/resolve.ts'

export interface ResolvedIssuers {
  readonly oidc: RuntimeOidc
  readonly issuers: readonly RuntimeIssuer[]
  readonly configs: readonly MCPOIDCConfig[]
}

/**
 * Builds the settings of all issuers and sets the condition, whose message lists every broken reference. A changed
 * configuration replaces the pods, because client secrets are environment variables.
 */
export function resolveIssuers(
  context: AnyContext,
  references: readonly IssuerReference[],
  target: OidcTarget,
): ConfigPart<ResolvedIssuers> {
  const part = issuersOf(context, references, target)
  const message = 'All referenced MCPOIDCConfigs are valid'
  context.conditions.check(oidcCondition.type, part.failure, oidcCondition.valid, message)
  for (const { name } of references)
    target.needs.revision(`oidcConfig ${name}`, configHashOf(context, 'MCPOIDCConfig', name))
  return part
}

function issuersOf(
  context: AnyContext,
  references: readonly IssuerReference[],
  target: OidcTarget,
): ConfigPart<ResolvedIssuers> {
  const found = references.map(({ name }) => configCalled(context, 'MCPOIDCConfig', name, oidcCondition))
  const failures = found.flatMap(({ failure }, index) =>
    failure ? [{ ...failure, message: `oidcConfigRefs[${index}]: ${failure.message}` }] : [],
  )
  const [broken] = failures
  if (broken) return failed(broken.reason, failures.map(({ message }) => message).join('; '))
  const configs = found.flatMap(({ value }) => value ?? [])
  const built = references.flatMap((reference, index) => {
    const config = configs[index]
    const clientSecretEnv = index === 0 ? target.clientSecretEnv : `${target.clientSecretEnv}_${index}`
    return config ? [{ config, reference, target: { ...target, clientSecretEnv } }] : []
  })
  const [first, ...others] = built
  if (!first) return failed(oidcCondition.notValid, 'oidcConfigRefs is empty')
  const advertise = first.reference.advertise === false ? { advertise: false } : {}
  const oidc = { ...oidcPart(first.config, first.reference, first.target), ...advertise }
  const issuers = others.map((other) => issuerPart(other.config, other.reference, other.target))
  const conflicts = issuerViolations([oidc, ...issuers]).map(
    ({ index, field, message }) =>
      `oidcConfigRefs[${index}]: MCPOIDCConfig ${references[index]?.name}: ${field}: ${message}`,
  )
  if (conflicts.length > 0) return failed(oidcCondition.notValid, conflicts.join('; '))
  return { value: { oidc, issuers, configs } }
}

/** Returns the reference to the server's own issuer. */
export function ownIssuerReference(fields: {
  readonly oidcConfigRef?: IssuerReference
  readonly oidcConfigRefs?: readonly IssuerReference[]
}): IssuerReference | undefined {
  return fields.oidcConfigRef ?? fields.oidcConfigRefs?.[0]
}

/** Checks `oidcConfigRefs` against rules that the schema cannot express. */
export function issuerReferenceViolations(
  references: readonly IssuerReference[] | undefined,
  path: string,
): readonly Violation[] {
  return (references ?? []).flatMap((reference, index, all) => {
    const at = `${path}[${index}]`
    const misplaced =
      index === 0
        ? (['subjectPrefix', 'groupPrefix'] as const).map((field) => ({
            field,
            message: 'cannot be set for the first issuer, whose subjects and groups stay unchanged',
          }))
        : (['resourceUrl', 'scopes'] as const).map((field) => ({
            field,
            message: 'can only be set for the first issuer, because it applies to the whole server',
          }))
    const conflicts = index === 0 ? [] : prefixConflicts(reference, all.slice(1, index))
    return [...misplaced.filter(({ field }) => reference[field] !== undefined), ...conflicts].map(
      ({ field, message }) => ({ path: `${at}.${field}`, message }),
    )
  })
}
