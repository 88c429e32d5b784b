/**
 * MCPServer: runs an MCP server image behind a proxy.
 *
 * The server is a direct child, so the proxy needs no Kubernetes API access and garbage collection is free. References
 * are judged all at once; a broken one keeps what runs.
 */
import type { MCPServer } from '../../../schemas/index.ts'
import { childKinds } from '../../child-kinds.ts'
import { workloadState } from '../../children/workload.ts'
import type { Fault } from '../../conditions.ts'
import { conflictCondition, strangersFault } from '../../conflicts.ts'
import { SyncContext } from '../../context.ts'
import { echoChildren } from '../../echo.ts'
import { fieldsOf, isTerminating } from '../../kube.ts'
import { serverNames, serviceUrl } from '../../names.ts'
import type { CustomizeRequest, CustomizeResponse, SyncRequest, SyncResponse } from '../../protocol.ts'
import { groupFault, specFault } from '../../references.ts'
import type { KindHooks } from '../../registry.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../rules.ts'
import type { HookSettings } from '../../settings.ts'
import { definedFields, observedFields } from '../../status.ts'
import { proxyChildren, serverChildren, serverTemplate, serverUrl } from './children.ts'

const related = ['MCPGroup'] as const

export const mcpServer: KindHooks = {
  kind: 'MCPServer',
  childKinds: [
    childKinds.ServiceAccount,
    childKinds.ConfigMap,
    childKinds.Service,
    childKinds.StatefulSet,
    childKinds.Deployment,
  ],
  relatedKinds: [
    ...ownRelatedKinds(related),
    coreRelated.Secret,
    coreRelated.ConfigMap,
    coreRelated.Service,
    coreRelated.StatefulSet,
    coreRelated.Deployment,
  ],
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest): CustomizeResponse {
  const names = serverNames(parent.metadata.name)
  return relatedRules(parent, {
    kinds: related,
    own: [
      { kind: 'Deployment', name: names.proxy },
      { kind: 'StatefulSet', name: names.server },
      { kind: 'Service', name: names.proxy },
      { kind: 'Service', name: names.server },
      { kind: 'Service', name: names.headless },
    ],
  })
}

function sync(request: SyncRequest, settings: HookSettings): SyncResponse {
  const context = new SyncContext<MCPServer>(request, settings)
  const invalid = specFault(context.problems, 'ConfigInvalid')
  context.conditions.check('Valid', invalid, 'ConfigValid', 'Spec validation passed')
  if (invalid) return respond(context, echoChildren(request), invalid)
  const { groupRef } = context.parent.spec
  if (groupRef) {
    context.conditions.check(
      'GroupRefValidated',
      groupFault(context, groupRef.name),
      'GroupRefIsValid',
      'The group exists',
    )
  }
  const server = serverTemplate(context)
  const template: Fault | undefined = server.faults && {
    reason: 'InvalidPodTemplateSpec',
    message: server.faults.join('; '),
  }
  context.conditions.check('PodTemplateValid', template, 'ValidPodTemplateSpec', 'The pod template is valid')
  if (!server.template) return respond(context, echoChildren(request), template)
  const children = [
    ...serverChildren(context, server.template),
    ...proxyChildren(context, {
      args: [
        'proxy',
        `--target-uri=${serverUrl(context)}`,
        '--host=0.0.0.0',
        `--port=${context.parent.spec.proxyPort}`,
        context.name,
      ],
      env: [],
      volumes: [],
      mounts: [],
      annotations: {},
    }),
  ]
  const conflict = strangersFault(request, children)
  if (conflict) context.conditions.set(conflictCondition, false, conflict.reason, conflict.message)
  return respond(context, children, conflict)
}

function respond(
  context: SyncContext<MCPServer>,
  children: SyncResponse['children'],
  fault: Fault | undefined,
): SyncResponse {
  const { name, namespace, settings } = context
  const names = serverNames(name)
  const proxy = workloadState(context.child('Deployment', names.proxy))
  const { phase, message, ready, reason } = phaseOf(context, fault)
  context.conditions.set('Ready', ready, reason, message)
  const spec = fieldsOf(context.stored['spec'])
  const port = typeof spec['proxyPort'] === 'number' ? spec['proxyPort'] : 8080
  const path = spec['transport'] === 'sse' ? '/sse' : '/mcp'
  return {
    status: definedFields({
      phase,
      message,
      url: `${serviceUrl(names.proxy, namespace, settings.clusterDomain, port)}${path}`,
      readyReplicas: proxy?.readyReplicas ?? 0,
      replicas: proxy?.replicas ?? 0,
      ...observedFields(context),
    }),
    children,
  }
}

function phaseOf(context: SyncContext<MCPServer>, fault: Fault | undefined) {
  const names = serverNames(context.name)
  const proxy = workloadState(context.child('Deployment', names.proxy))
  const server = workloadState(context.child('StatefulSet', names.server))
  if (isTerminating(context.stored)) {
    return { phase: 'Terminating', ready: false, reason: 'NotReady', message: 'MCP server is being deleted' }
  }
  if (fault) return { phase: 'Failed', ready: false, reason: 'NotReady', message: fault.message }
  if (proxy?.replicas === 0) {
    return {
      phase: 'Stopped',
      ready: false,
      reason: 'NotReady',
      message: 'MCP server is stopped: it has no replicas',
    }
  }
  const failure = proxy?.failure ?? server?.failure
  if (proxy && server && proxy.availableReplicas > 0 && server.availableReplicas > 0) {
    return { phase: 'Ready', ready: true, reason: 'Ready', message: 'MCP server is running' }
  }
  if (failure !== undefined) return { phase: 'Failed', ready: false, reason: 'NotReady', message: failure }
  return { phase: 'Pending', ready: false, reason: 'NotReady', message: 'MCP server is being created' }
}
