/** Admission warnings for a valid VirtualMCPServer. */
import type { VirtualMCPServer } from '../../../schemas/index.ts'
import { guardrailWarnings } from '../../../schemas/guardrails/index.ts'
import { workflowWarnings } from '../../../schemas/workflow/index.ts'
import { mostReplicas } from '../../children/serving/availability.ts'
import { virtualServerNames } from '../../children/names.ts'
import { replicaFailure } from '../../runtime-config/auth-server.ts'
import { consoleWarnings } from './config/console.ts'
import { authServerWarnings } from '../../externalauth/index.ts'
import { unknownBackendsOf } from '../../references/backend-names.ts'
import { policyNameWarnings } from '../common/checks/policies.ts'
import { tlsWarnings } from '../common/serving-tls.ts'

export function virtualServerWarnings({ metadata, spec }: VirtualMCPServer): readonly string[] {
  const { config } = spec
  const found = (config?.compositeTools ?? []).flatMap(workflowWarnings)
  if (spec.incomingAuth.authzConfig?.inline?.primaryUpstreamProvider !== undefined) {
    found.push(
      'authzConfig.inline.primaryUpstreamProvider is deprecated; set authServerConfig.primaryUpstreamProvider',
    )
  }
  if (config?.telemetry) found.push('config.telemetry is deprecated here; use telemetryConfigRef')
  if (config?.incomingAuth) found.push('config.incomingAuth is superseded by spec.incomingAuth')
  if (config?.outgoingAuth) found.push('config.outgoingAuth is superseded by spec.outgoingAuth')
  if (config?.passthroughHeaders && spec.passthroughHeaders) {
    found.push('config.passthroughHeaders is superseded by spec.passthroughHeaders')
  }
  if (config?.backends?.length && spec.outgoingAuth?.source !== 'inline') {
    found.push('config.backends is used only with outgoingAuth.source inline')
  }
  found.push(...quotaWarnings(spec))
  found.push(...policyNameWarnings(spec.incomingAuth.authzConfig), ...consoleWarnings(spec, metadata.name))
  found.push(...tlsWarnings(spec, virtualServerNames(metadata.name).server))
  const { guardrails, operational } = config ?? {}
  for (const { path, message } of guardrailWarnings(
    guardrails,
    'config.guardrails',
    operational?.maxResultBytes,
  ))
    found.push(clip(`${path}: ${message}`, 120))
  found.push(...backendNames(spec))
  if (spec.embeddingServerRef && config?.optimizer?.embeddingService !== undefined) {
    found.push('config.optimizer.embeddingService is overridden by embeddingServerRef')
  }
  if (spec.serviceAccount !== undefined) {
    const { report } = virtualServerNames(metadata.name)
    found.push(
      clip(`serviceAccount requires get and patch on ConfigMap ${report}, where the pods report health`, 120),
    )
  }
  if (!spec.authServerConfig) return found
  const replicas = replicaFailure(spec.authServerConfig, mostReplicas(spec))
  if (replicas) found.push(clip(`authServerConfig: ${replicas.message}`, 120))
  return [...found, ...authServerWarnings(spec.authServerConfig, 'authServerConfig')]
}

/** Warns that each pod keeps its own count when counters are in memory. */
function quotaWarnings(spec: VirtualMCPServer['spec']): string[] {
  const { quotas = [], costs } = spec.config ?? {}
  const inMemory = quotas.length > 0 && spec.sessionStorage?.provider !== 'redis'
  return [
    ...(inMemory && mostReplicas(spec) > 1
      ? [
          'config.quotas: each replica counts on its own; use sessionStorage with provider redis to share counters',
        ]
      : []),
    ...(costs && !quotas.some(({ unit }) => unit === 'cost')
      ? ['config.costs has no effect, because no quota uses the unit cost']
      : []),
  ]
}

/**
 * Warns about unknown backend names. This check does not read the group's members, which are also backends. The check
 * therefore reports a name only if the name is similar to a static backend's name.
 */
function backendNames(spec: VirtualMCPServer['spec']): string[] {
  if (spec.outgoingAuth?.source !== 'inline') return []
  const names = (spec.config?.backends ?? []).map(({ name }) => name)
  return unknownBackendsOf(spec, names).flatMap(({ path, similar }) =>
    similar === undefined
      ? []
      : [clip(`no static backend has this name; did you mean ${similar}? ${path}`, 120)],
  )
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
