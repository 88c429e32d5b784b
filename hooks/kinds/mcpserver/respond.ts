/**
 * The response of an MCPServer's sync. Phases come from the two workloads' status, never from pods.
 */
import { selectorLabels } from '../../children/labels.ts'
import { workloadState } from '../../children/workload.ts'
import type { Failure } from '../../sync/conditions.ts'
import { conflictCondition, unmanagedObjectError } from '../../sync/conflicts.ts'
import type { SyncContext } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { fieldsOf, isTerminating } from '../../kube.ts'
import { serverNames } from '../../children/names.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { definedFields } from '../../children/defined.ts'
import { labelSelectorText, observedFields } from '../../sync/status.ts'
import { addressOf, type Built } from './build.ts'
import { app } from './children.ts'

type Context = SyncContext<'MCPServer'>

export function respond(context: Context, built: Built): SyncResponse {
  const proxy = workloadState(context.child('Deployment', serverNames(context.name).proxy))
  const conflict = unmanagedObjectError(context.request, built.children ?? [])
  if (conflict) context.conditions.set(conflictCondition, false, conflict.reason, conflict.message)
  const { phase, message, ready } = phaseOf(context, conflict ? [conflict] : built.violations)
  context.conditions.set('Ready', ready, ready ? 'Ready' : 'NotReady', message)
  return {
    status: definedFields({
      phase,
      message,
      url: context.problems.length === 0 ? addressOf(context) : fieldsOf(context.stored['status'])['url'],
      readyReplicas: proxy?.readyReplicas ?? 0,
      replicas: proxy?.replicas ?? 0,
      selector: labelSelectorText(selectorLabels(app, context.name, 'proxy')),
      ...built.hashes,
      ...observedFields(context),
    }),
    children: built.children ?? lastAppliedChildren(context.request),
  }
}

function phaseOf(
  context: Context,
  violations: readonly Failure[],
): { phase: string; message: string; ready: boolean } {
  const names = serverNames(context.name)
  const proxy = workloadState(context.child('Deployment', names.proxy))
  const server = workloadState(context.child('StatefulSet', names.server))
  if (isTerminating(context.stored)) return not('Terminating', 'MCP server is being deleted')
  if (violations.length > 0) return not('Failed', violations.map((failure) => failure.message).join('; '))
  if (proxy?.replicas === 0) return not('Stopped', 'MCP server is stopped: it has no replicas')
  if (proxy && server && proxy.availableReplicas > 0 && server.availableReplicas > 0) {
    return { phase: 'Ready', message: 'MCP server is running', ready: true }
  }
  const failure = proxy?.failure ?? server?.failure
  return failure === undefined ? not('Pending', 'MCP server is being created') : not('Failed', failure)
}

function not(phase: string, message: string) {
  return { phase, message, ready: false }
}
