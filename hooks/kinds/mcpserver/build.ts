/** Builds the desired children of an MCPServer, or returns the errors that prevent it. */
import type { MCPServer } from '../../../schemas/index.ts'
import { mostReplicas } from '../../children/serving/availability.ts'
import { sizeFailure } from '../../children/size.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { KubeObject } from '../../base/kube.ts'
import { serverNames, serviceUrl } from '../../children/names.ts'
import { PodNeeds } from '../../runtime-config/needs.ts'
import { checkReplicaSessions } from '../../runtime-config/session-storage.ts'
import { type BuiltProxyConfig, type ForwardTarget, proxyConfig } from '../common/proxy/config.ts'
import { proxyReferences } from '../common/proxy/references.ts'
import { resolveReferences } from '../../references/reference.ts'
import { externalUrl } from '../common/exposure.ts'
import { addTlsFiles, checkTls, servedUrl } from '../common/serving-tls.ts'
import { proxyChildren, type ProxyWorkload } from '../common/proxy/children.ts'
import { checkPodTemplate, mergeFailure, templateFailure } from '../common/pod-template.ts'
import { specFailure } from '../../references/resolve.ts'
import {
  app,
  restartAnnotations,
  serverChildren,
  serverReplicas,
  serverTemplate,
  serverUrl,
} from './children.ts'
import { networkPolicy } from './network.ts'
import { isAttached, type Stdio, stdioOf } from './stdio.ts'

type Context = SyncContext<'MCPServer'>

export interface BuiltServer {
  /** Undefined when a required part is broken; the running children then stay unchanged. */
  readonly children: readonly KubeObject[] | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: BuiltProxyConfig['hashes']
}

/** Returns the transport that clients see: proxyMode for stdio servers, otherwise the server's own transport. */
function clientTransport({ spec }: MCPServer): 'sse' | 'streamable-http' {
  return spec.transport === 'stdio' ? spec.proxyMode : spec.transport
}

/** Returns the proxy's address with the path of its MCP endpoint. */
export function addressOf(context: Context): string {
  const { name, namespace, settings, parent } = context
  const base = serviceUrl(serverNames(name).proxy, namespace, settings.clusterDomain, parent.spec.proxyPort)
  return servedUrl(context, base) + (clientTransport(parent) === 'sse' ? '/sse' : '/mcp')
}

/** Returns the address for clients outside the cluster, or undefined when the proxy is not exposed. */
export function externalAddressOf(context: Context): string | undefined {
  return externalUrl(context, addressOf(context))
}

/** Resolves the references and builds the configuration, the pods and the children. */
export function build(context: Context): BuiltServer {
  const { conditions, spec } = context
  const invalid = specFailure(context.violations, 'ConfigInvalid')
  conditions.check('Valid', invalid, 'ConfigValid', 'Spec validation passed')
  if (invalid) {
    checkPodTemplate(conditions, templateFailure(context.violations))
    return { children: undefined, failures: [invalid], hashes: {} }
  }
  const needs = new PodNeeds()
  const stdio = stdioOf(context)
  const workload = proxyWorkload(context, stdio)
  const target = { context, needs, resource: externalAddressOf(context) ?? addressOf(context), workload }
  const references = resolveReferences(proxyReferences, target)

  const config = proxyConfig(target, references, forwardTo(context, stdio))
  const { policy, failure: profile } = networkPolicy(context)
  const checks = [stdio.failure, profile, checkSecrets(context), checkTls(context, addressOf(context))]
  checkSessions(context)
  checkReplicas(context)
  checkRateLimits(context)

  needs.revision('attach', stdio.attach?.revision)
  addTlsFiles(context, needs)
  const server = serverTemplate(context, stdio)
  const template = server.violations && mergeFailure(server.violations)
  const proxy =
    config.file &&
    proxyChildren(config, needs, {
      ...workload,
      podTemplateSpec: spec.resourceOverrides?.proxyDeployment?.podTemplateSpec,
      annotations: restartAnnotations(context),
    })
  checkPodTemplate(conditions, template ?? proxy?.failure)

  const { hashes } = config
  const failures = [template, ...checks, ...config.failures, proxy?.failure].filter(
    (failure) => failure !== undefined,
  )
  if (failures.length > 0 || !server.template || !proxy?.children)
    return { children: undefined, failures, hashes }
  const children = [...serverChildren(context, server.template, stdio, policy), ...proxy.children]
  const size = sizeFailure(children)
  return size ? { children: undefined, failures: [size], hashes } : { children, failures: [], hashes }
}

function forwardTo(context: Context, { attach }: Stdio): ForwardTarget {
  const { parent } = context
  const transport = clientTransport(parent)
  return {
    targetUri: attach?.targetUri ?? serverUrl(context),
    transport,
    proxyMode: transport,
    ...(parent.spec.transport === 'stdio' && { identifyCallers: true }),
  }
}

/** Returns the workload of the proxy in front of the server. */
export function proxyWorkload(context: Context, { attach }: Stdio): ProxyWorkload {
  return {
    context,
    app,
    names: serverNames(context.name),
    component: 'proxy',
    replicas: proxyReplicas(context),
    sidecar: attach && { containers: [attach.sidecar], volumes: attach.volumes },
  }
}

function checkSessions(context: Context): void {
  const { spec, settings, conditions } = context
  const proxies = mostReplicas({ replicas: proxyReplicas(context), autoscaling: spec.autoscaling })
  const most = Math.max(proxies, serverReplicas(context) ?? 0)
  checkReplicaSessions(conditions, settings, spec.sessionStorage?.provider, most)
}

/**
 * Limits a stdio server's proxy to one replica, because sessions either have a process each and cannot move, or share
 * one process. An attached server is never autoscaled.
 */
function proxyReplicas(context: Context): number | undefined {
  const { replicas, transport } = context.parent.spec
  if (isAttached(context)) return Math.min(replicas ?? 1, 1)
  return transport === 'stdio' && replicas !== undefined ? Math.min(replicas, 1) : replicas
}

function checkReplicas(context: Context): void {
  const { conditions, parent } = context
  const { transport, replicas = 0, backendReplicas = 0 } = parent.spec
  const capped = [
    ...(transport === 'stdio' && replicas > 1 ? ['replicas is capped at 1'] : []),
    ...(isAttached(context) && backendReplicas > 1 ? ['backendReplicas is capped at 1'] : []),
  ]
  if (capped.length > 0) {
    conditions.set(
      'StdioReplicaCapped',
      'True',
      'StdioTransportCapAt1',
      `A stdio server has at most one proxy; ${capped.join(', ')}`,
    )
  } else
    conditions.set(
      'StdioReplicaCapped',
      'False',
      'StdioReplicaCapNotActive',
      'The number of replicas matches the spec',
    )
}

/**
 * The schema also rejects rate limits for stdio. This check covers objects that were admitted under an earlier schema.
 */
function checkRateLimits({ conditions, parent }: Context): void {
  if (parent.spec.rateLimiting) {
    conditions.set('RateLimitConfigValid', 'True', 'RateLimitConfigValid', 'The rate limits are valid')
  } else conditions.set('RateLimitConfigValid', 'True', 'RateLimitNotApplicable', 'No rate limits are set')
}

function checkSecrets(context: Context): SyncFailure | undefined {
  return context.missingSecretsFailure(context.spec.secrets ?? [], 'SecretNotFound', 'spec.secrets')
}
