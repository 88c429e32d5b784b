/** Builds the sync response of a catalogue. The phase is derived from the Deployment's status. */
import { definedFields, isTerminating, type KubeObject } from '../../base/kube.ts'
import { labelSelectorText, selectorLabels } from '../../children/labels.ts'
import { catalogueNames } from '../../children/names.ts'
import { type SyncFailure, statusOf } from '../../sync/conditions.ts'
import { checkChildNames } from '../../sync/conflicts.ts'
import { observedFields, type SyncContext } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { reportProgress, stuckMessage } from '../../sync/progress.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { desiredWorkload, type WorkloadState, workloadState } from '../../sync/workload-state.ts'
import { checkExposure } from '../common/exposure.ts'
import { app } from './children.ts'

type Context = SyncContext<'MCPCatalogue'>

export interface BuiltCatalogue {
  /** Undefined when a required part is broken; the running children then stay unchanged. */
  readonly children: readonly KubeObject[] | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: Readonly<Record<string, string | undefined>>
  /** Number of listed servers; undefined for an invalid spec. */
  readonly servers: number | undefined
  readonly url: string
  readonly externalUrl: string | undefined
}

export function respond(context: Context, built: BuiltCatalogue): SyncResponse {
  const { server } = catalogueNames(context.name)
  const pods = workloadState(
    context.child('Deployment', server),
    desiredWorkload(built.children, 'Deployment', server),
    context.stored,
  )
  const conflict = checkChildNames(context, built.children)
  const failures = conflict ? [conflict] : built.failures
  const { phase, message } = phaseOf(context, pods, failures)
  const isReady = phase === 'Ready' || phase === 'Degraded'
  const reason = isReady ? 'DeploymentReady' : (failures[0]?.reason ?? 'DeploymentNotReady')
  context.conditions.set('Ready', statusOf(isReady), reason, message)
  checkExposure(context, server, {
    'the resourceUrl of oidcConfigRef': context.spec.incomingAuth?.oidcConfigRef?.resourceUrl,
  })
  reportProgress(context, { failures, workloads: [pods] })
  return {
    status: definedFields({
      phase,
      message,
      url: built.url,
      externalUrl: built.externalUrl,
      publishedCount: built.servers,
      replicas: pods?.replicas ?? 0,
      selector: labelSelectorText(selectorLabels(app, context.name)),
      ...built.hashes,
      ...observedFields(context),
    }),
    children: built.children ?? lastAppliedChildren(context.request),
  }
}

function phaseOf(context: Context, pods: WorkloadState | undefined, failures: readonly SyncFailure[]) {
  if (isTerminating(context.stored))
    return { phase: 'Terminating', message: 'The catalogue is being deleted' }
  if (failures.length > 0)
    return { phase: 'Failed', message: failures.map(({ message }) => message).join('; ') }
  if (pods && pods.availableReplicas > 0)
    return pods.failure === undefined
      ? { phase: 'Ready', message: 'The catalogue is running' }
      : { phase: 'Degraded', message: stuckMessage(pods.failure) }
  if (pods?.failure !== undefined) return { phase: 'Failed', message: pods.failure }
  if (pods?.replicas === 0)
    return { phase: 'Pending', message: 'The catalogue is stopped: it has no replicas' }
  return { phase: 'Pending', message: 'The catalogue is starting' }
}
