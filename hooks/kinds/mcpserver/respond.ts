/** Builds the sync response of an MCPServer. Phases are derived from the status of both workloads, never from pods. */
import { checkAutoscaler } from '../../children/serving/availability.ts'
import { selectorLabels, labelSelectorText } from '../../children/labels.ts'
import { desiredWorkload, type WorkloadState, workloadState } from '../../sync/workload-state.ts'
import { type SyncFailure, statusOf } from '../../sync/conditions.ts'
import { checkChildNames } from '../../sync/conflicts.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { fieldsOf, isTerminating, definedFields } from '../../base/kube.ts'
import { serverNames } from '../../children/names.ts'
import { checkExposure } from '../common/exposure.ts'
import { statusUrl } from '../common/serving-tls.ts'
import { clientUrls } from '../common/proxy/config.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { reportProgress, stuckMessage, stuckRollout } from '../../sync/progress.ts'
import { permanentFailure, setAttached } from './attachment.ts'
import { addressOf, externalAddressOf, type BuiltServer } from './build.ts'
import { app } from './children.ts'

type Context = SyncContext<'MCPServer'>

export function respond(context: Context, built: BuiltServer): SyncResponse {
  const workloads = workloadsOf(context, built)
  const [proxy] = workloads
  const conflict = checkChildNames(context, built.children)
  const failures = conflict ? [conflict] : built.failures
  const { phase, message, ready } = phaseOf(context, workloads, failures)
  context.conditions.set('Ready', statusOf(ready), ready ? 'Ready' : 'NotReady', message)
  checkAutoscaler(context, serverNames(context.name).proxy, context.spec.autoscaling)
  setAttached(context, proxy)
  checkExposure(context, serverNames(context.name).proxy, clientUrls(context))
  reportProgress(context, { failures, workloads, broken: permanentFailure(context, workloads) })
  return {
    status: definedFields({
      phase,
      message,
      externalUrl: context.violations.length === 0 ? externalAddressOf(context) : undefined,
      url:
        context.violations.length === 0
          ? statusUrl(context, addressOf(context), built.children)
          : fieldsOf(context.stored['status'])['url'],
      readyReplicas: proxy?.readyReplicas ?? 0,
      replicas: proxy?.replicas ?? 0,
      selector: labelSelectorText(selectorLabels(app, context.name, 'proxy')),
      ...built.hashes,
      ...observedFields(context),
    }),
    children: built.children ?? lastAppliedChildren(context.request),
  }
}

type Workloads = readonly [proxy: WorkloadState | undefined, server: WorkloadState | undefined]

function workloadsOf(context: Context, { children }: BuiltServer): Workloads {
  const { proxy, server } = serverNames(context.name)
  return [
    workloadState(
      context.child('Deployment', proxy),
      desiredWorkload(children, 'Deployment', proxy),
      context.stored,
    ),
    workloadState(
      context.child('StatefulSet', server),
      desiredWorkload(children, 'StatefulSet', server),
      context.stored,
    ),
  ]
}

function phaseOf(
  context: Context,
  workloads: Workloads,
  failures: readonly SyncFailure[],
): { phase: string; message: string; ready: boolean } {
  const [proxy, server] = workloads
  if (isTerminating(context.stored)) return notReady('Terminating', 'MCP server is being deleted')
  if (failures.length > 0) return notReady('Failed', failures.map((failure) => failure.message).join('; '))
  const stuck = stuckRollout(workloads)
  const broken = permanentFailure(context, workloads)
  if (proxy?.replicas === 0) return notReady('Stopped', 'MCP server is stopped: it has no replicas')
  if (proxy && server && proxy.availableReplicas > 0 && server.availableReplicas > 0) {
    if (stuck !== undefined) return { phase: 'Degraded', message: stuckMessage(stuck), ready: true }
    return { phase: 'Ready', message: 'MCP server is running', ready: true }
  }
  if (broken) return notReady('Failed', broken.message)
  return stuck === undefined ? notReady('Pending', 'MCP server is being created') : notReady('Failed', stuck)
}

function notReady(phase: string, message: string) {
  return { phase, message, ready: false }
}
