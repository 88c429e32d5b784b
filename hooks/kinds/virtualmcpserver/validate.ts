/**
 * Checks a VirtualMCPServer against rules that its schema cannot express.
 *
 * Reconciliation, not admission, checks other objects and the http issuer.
 * Source: docs/reference/specification/virtual-server.md#errors, Errors and Limits.
 */
import {
  addressViolation,
  dpopModeViolation,
  reservedOverrides,
  upstreamFilterViolations,
  type Violation,
  type VirtualMCPServer,
  type VirtualMCPServerSpec,
} from '../../../schemas/index.ts'
import { guardrailViolations } from '../../../schemas/guardrails/index.ts'
import { CheckBudget, workflowViolations } from '../../../schemas/workflow/index.ts'
import { authzViolations } from '../common/checks/policies.ts'
import { overrideViolations } from '../common/checks/tools.ts'
import { maxBytes, sizeViolations } from '../../children/size.ts'
import { toYaml } from '../../children/yaml.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { mergedTemplateViolations } from '../../children/pod-template.ts'
import { mostReplicas } from '../../children/serving/availability.ts'
import { machineReplicaFailure } from '../../runtime-config/auth-server.ts'
import { PodNeeds } from '../../runtime-config/needs.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { checkContext } from '../common/check-context.ts'
import { commonNeeds, container, generatedTemplate } from './children.ts'
import { consoleViolations } from './config/console.ts'
import { issuerReferenceViolations, ownIssuerReference } from '../../runtime-config/issuers.ts'
import { reservedNames } from './references.ts'
import { resourceViolations } from '../../runtime-config/trusted-issuers.ts'
import { authServerViolations, hasIdentity } from '../../externalauth/index.ts'
import { definedFields } from '../../base/kube.ts'

export function virtualServerViolations(server: VirtualMCPServer, settings: CheckSettings): Violation[] {
  const { spec } = server
  return [
    ...templateViolations(server, settings),
    ...authzViolations(spec.incomingAuth.authzConfig, 'spec.incomingAuth.authzConfig'),
    ...(spec.authServerConfig ? authServerViolations(spec.authServerConfig, 'spec.authServerConfig') : []),
    ...filterViolations(spec),
    ...issuerReferenceViolations(spec.incomingAuth.oidcConfigRefs, 'spec.incomingAuth.oidcConfigRefs'),
    ...pairingViolations(spec),
    ...replicaViolations(spec),
    ...aggregationViolations(spec),
    ...optimizerViolations(spec),
    ...compositeViolations(spec),
    ...addressViolations(spec),
    ...guardrailViolations(spec.config?.guardrails, 'spec.config.guardrails'),
    ...consoleViolations(spec),
    ...metadataViolations(spec.exposure?.ingress, 'spec.exposure.ingress'),
    ...tooLarge(spec),
  ]
}

function templateViolations(server: VirtualMCPServer, settings: CheckSettings): Violation[] {
  const generated = () => {
    const context = checkContext(server, 'VirtualMCPServer', settings)
    const needs = new PodNeeds()
    commonNeeds(context, needs)
    return generatedTemplate(context, needs, '')
  }
  return mergedTemplateViolations({ user: server.spec.podTemplateSpec, generated, container })
}

/** Checks the size of the parts copied into the running server's file. */
function tooLarge({
  config,
  incomingAuth,
  outgoingAuth,
  podTemplateSpec,
}: VirtualMCPServerSpec): Violation[] {
  const { aggregation, compositeTools, backends, console } = config ?? {}
  const inline = outgoingAuth?.source === 'inline' ? backends : undefined
  const { policies, shadowPolicies, entitiesJson } = incomingAuth.authzConfig?.inline ?? {}
  const file = definedFields({
    aggregation,
    compositeTools,
    backends: inline,
    policies,
    shadowPolicies,
    entitiesJson,
    console,
  })
  return [
    // Writing YAML takes time, so the check first estimates the size from the JSON. YAML can be half as long as JSON.
    ...(JSON.stringify(file).length * 2 > maxBytes
      ? sizeViolations('spec', 'a ConfigMap', toYaml(file))
      : []),
    ...sizeViolations('spec.podTemplateSpec', 'a Deployment', podTemplateSpec),
  ]
}

/** Checks that incoming authentication, policies and the embedded server are consistent. */
function pairingViolations({
  incomingAuth,
  authServerConfig: server,
  tls,
}: VirtualMCPServerSpec): Violation[] {
  const violations: Violation[] = []
  if (server && incomingAuth.type !== 'oidc') {
    violations.push({
      path: 'spec.incomingAuth.type',
      message: 'must be oidc when authServerConfig is set, because that server issues the tokens',
    })
  }
  const dpop = server && dpopModeViolation(server.dpop, incomingAuth.dpop)
  if (dpop !== undefined) violations.push({ path: 'spec.incomingAuth.dpop.mode', message: dpop })
  if (server?.tlsClientCertificateBoundAccessTokens && !tls?.clientCABundleRef) {
    violations.push({
      path: 'spec.tls.clientCABundleRef',
      message: 'is required, because authServerConfig binds tokens to certificates',
    })
  }
  const resource = ownIssuerReference(incomingAuth)?.resourceUrl
  // Without resourceUrl, the resource depends on the cluster, so reconciliation checks the resource.
  if (server && resource !== undefined) {
    const found = resourceViolations(server, resource)
    violations.push(...found.map((one) => ({ ...one, path: `spec.authServerConfig.${one.path}` })))
  }
  const inline = incomingAuth.authzConfig?.inline?.primaryUpstreamProvider
  if (inline === undefined) return violations
  const path = 'spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider'
  if (!server) violations.push({ path, message: 'requires spec.authServerConfig' })
  else if (!server.upstreamProviders.some(({ name }) => name === inline)) {
    violations.push({ path, message: 'must be the name of one of authServerConfig.upstreamProviders' })
  }
  return violations
}

function filterViolations({
  authServerUpstreamFilter: filter,
  authServerConfig: server,
}: VirtualMCPServerSpec): Violation[] {
  const path = 'spec.authServerUpstreamFilter'
  if (!filter) return []
  if (!server) return [{ path, message: 'requires spec.authServerConfig' }]
  const known = server.upstreamProviders.map(({ name, oauth2Config }) => ({
    name,
    hasIdentity: oauth2Config === undefined || hasIdentity(oauth2Config),
  }))
  return upstreamFilterViolations(filter, known).map((one) => ({ ...one, path: `${path}.${one.path}` }))
}

function replicaViolations({ authServerConfig: server, ...spec }: VirtualMCPServerSpec): Violation[] {
  const message = server && machineReplicaFailure(server, mostReplicas(spec))
  return message === undefined ? [] : [{ path: 'spec.authServerConfig', message }]
}

function aggregationViolations(spec: VirtualMCPServerSpec): Violation[] {
  const { config } = spec
  const path = 'spec.config.aggregation'
  return [
    ...(config?.aggregation?.tools ?? []).flatMap(({ overrides }, index) =>
      overrideViolations(overrides, `${path}.tools[${index}].overrides`),
    ),
    ...reservedOverrides(config?.aggregation, reservedNames(spec), path),
  ]
}

function optimizerViolations({ config, embeddingServerRef }: VirtualMCPServerSpec): Violation[] {
  if (!config?.optimizer || embeddingServerRef || config.optimizer.embeddingService) return []
  return [
    {
      path: 'spec.embeddingServerRef',
      message: 'is required with config.optimizer, unless it sets embeddingService',
    },
  ]
}

function compositeViolations({ config }: VirtualMCPServerSpec): Violation[] {
  const budget = new CheckBudget()
  return (config?.compositeTools ?? []).flatMap((tool, index) =>
    workflowViolations(tool, `spec.config.compositeTools[${index}]`, budget),
  )
}

/** Rejects static backends and an embedding service with addresses that no legitimate server uses. */
function addressViolations({ config }: VirtualMCPServerSpec): Violation[] {
  const named = [
    ...(config?.backends ?? []).map(({ url }, index) => [`spec.config.backends[${index}].url`, url] as const),
    ['spec.config.optimizer.embeddingService', config?.optimizer?.embeddingService ?? ''] as const,
  ]
  return named.flatMap(([path, url]) => {
    const message = url === '' ? undefined : addressViolation(url, 'any')
    return message === undefined ? [] : [{ path, message }]
  })
}
