/**
 * Type `obo`: on-behalf-of token exchange with a directory provider.
 *
 * This module enforces the rules, because the schema makes every field optional. An installation without the handler
 * rejects the type before any other check.
 * Source: docs/reference/specification/external-auth.md#obo, "spec.obo".
 */
import { type OboConfig, parseDuration, type Violation } from '../../schemas/index.ts'
import { failed } from '../sync/conditions.ts'
import { credentialFiles, type ExternalAuthModule, definedItems, subjectProvider } from './module.ts'
import { definedFields } from '../base/kube.ts'
import { clientAuthPart } from '../runtime-config/client-auth.ts'

const defaultAuthority = 'https://login.microsoftonline.com'

export const enterpriseRequired =
  'On-behalf-of exchange is not enabled in this installation; set GATEHOUSE_ENABLE_OBO=true'

export const obo: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ obo: config }) => definedItems([config?.clientSecretRef, config?.clientAuth?.privateKeyRef]),
  rereadSecrets: ({ obo: config }) => definedItems([config?.clientAuth?.privateKeyRef]),
  toRuntime({ obo: config }, target) {
    const { needs, variable, enableObo } = target
    if (!enableObo) return failed('EnterpriseRequired', enterpriseRequired)
    const violations = oboViolations(config)
    if (violations.length > 0)
      return failed('InvalidConfig', violations.map(({ message }) => message).join('; '))
    if (!config) return { value: undefined }
    const provider = config.subjectTokenProviderName
    if (provider !== undefined) {
      const { failure } = subjectProvider(provider, target)
      if (failure) return { failure }
    }
    const tokenUrl = `${config.authority ?? defaultAuthority}/${config.tenantId}/oauth2/v2.0/token`
    const settings = definedFields({
      tokenUrl,
      clientId: config.clientId,
      clientSecretEnv:
        config.clientSecretRef &&
        needs.secretEnv(`GATEHOUSE_OBO_CLIENT_SECRET_${variable}`, config.clientSecretRef),
      clientAuth: clientAuthPart(config.clientAuth, 'client', tokenUrl, credentialFiles(target)),
      audience: config.audience,
      scopes: config.scopes,
      subjectTokenProviderName: provider,
      cacheSkewSeconds:
        config.cacheSkew === undefined ? undefined : Math.round(parseDuration(config.cacheSkew) / 1000),
    })
    return { value: { type: 'obo', obo: settings } }
  },
}

/** Returns violations that are reported during reconciliation. */
export function oboViolations(config: OboConfig | undefined): Violation[] {
  const violations: Violation[] = []
  const refuse = (field: string, message: string) => violations.push({ path: `spec.obo${field}`, message })
  if (!config?.audience && (config?.scopes ?? []).length === 0)
    refuse('', 'at least one of audience and scopes must be set')
  if (!config?.clientId) refuse('.clientId', 'clientId is required')
  const { method } = config?.clientAuth ?? {}
  const sendsSecret = method !== 'privateKeyJwt' && method !== 'federated'
  if (sendsSecret && !config?.clientSecretRef) refuse('.clientSecretRef', 'clientSecretRef is required')
  if (!sendsSecret && config?.clientSecretRef)
    refuse('.clientSecretRef', `clientSecretRef is not allowed with clientAuth method ${method}`)
  if (!config?.tenantId) refuse('.tenantId', 'tenantId is required')
  if (config?.cacheSkew !== undefined && !isDuration(config.cacheSkew)) {
    refuse('.cacheSkew', 'cacheSkew must be a non-negative duration such as 30s')
  }
  return violations
}

function isDuration(text: string): boolean {
  try {
    return parseDuration(text) >= 0
  } catch {
    return false
  }
}
