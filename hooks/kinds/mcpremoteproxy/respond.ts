/**
 * Builds the sync response of an MCPRemoteProxy. The phase is derived from the Deployment's status, never from pods.
 */
import { checkAutoscaler } from '../../children/serving/availability.ts'
import { selectorLabels, labelSelectorText } from '../../children/labels.ts'
import { desiredWorkload, type WorkloadState, workloadState } from '../../sync/workload-state.ts'
import { type SyncFailure, statusOf } from '../../sync/conditions.ts'
import { checkChildNames } from '../../sync/conflicts.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { fieldsOf, isTerminating, definedFields } from '../../base/kube.ts'
import { remoteProxyNames } from '../../children/names.ts'
import { checkExposure } from '../common/exposure.ts'
import { statusUrl } from '../common/serving-tls.ts'
import { clientUrls } from '../common/proxy/config.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { reportProgress, stuckMessage } from '../../sync/progress.ts'
import { addressOf, externalAddressOf, app, type BuiltRemoteProxy } from './build.ts'

type Context = SyncContext<'MCPRemoteProxy'>

export function respond(context: Context, built: BuiltRemoteProxy): SyncResponse {
  const name = remoteProxyNames(context.name).proxy
  const proxy = workloadState(
    context.child('Deployment', name),
    desiredWorkload(built.children, 'Deployment', name),
    context.stored,
  )
  const conflict = checkChildNames(context, built.children)
  const failures = conflict ? [conflict] : built.failures
  const { phase, message, reason } = phaseOf(context, proxy, failures)
  context.conditions.set('Ready', statusOf(phase === 'Ready' || phase === 'Degraded'), reason, message)
  checkAutoscaler(context, name, context.spec.autoscaling)
  checkExposure(context, name, clientUrls(context))
  reportProgress(context, { failures, workloads: [proxy] })
  return {
    status: definedFields({
      phase,
      message,
      externalUrl: context.violations.length === 0 ? externalAddressOf(context) : undefined,
      url:
        context.violations.length === 0
          ? statusUrl(context, addressOf(context), built.children)
          : fieldsOf(context.stored['status'])['url'],
      replicas: proxy?.replicas ?? 0,
      selector: labelSelectorText(selectorLabels(app, context.name)),
      ...built.hashes,
      ...observedFields(context),
    }),
    children: built.children ?? lastAppliedChildren(context.request),
  }
}

function phaseOf(context: Context, proxy: WorkloadState | undefined, failures: readonly SyncFailure[]) {
  if (isTerminating(context.stored))
    return phase('Terminating', 'DeploymentNotReady', 'The proxy is being deleted')
  if (failures.length > 0) {
    return phase(
      'Failed',
      'NotReady',
      `Validation failed: ${failures.map((failure) => failure.message).join('; ')}`,
    )
  }
  if (proxy && proxy.availableReplicas > 0) {
    return proxy.failure === undefined
      ? phase('Ready', 'DeploymentReady', 'The proxy is running')
      : phase('Degraded', 'DeploymentReady', stuckMessage(proxy.failure))
  }
  if (proxy?.failure !== undefined) return phase('Failed', 'DeploymentNotReady', proxy.failure)
  if (proxy?.replicas === 0) {
    return phase('Pending', 'DeploymentNotReady', 'The proxy is stopped: it has no replicas')
  }
  return phase('Pending', 'DeploymentNotReady', 'The proxy is starting')
}

function phase(name: string, reason: string, message: string) {
  return { phase: name, reason, message }
}
