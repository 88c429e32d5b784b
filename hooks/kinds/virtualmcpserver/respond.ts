/** Builds the sync response of a virtual server from the built children and the pods' reports. */
import type { DiscoveredBackend } from '../../../schemas/index.ts'
import { checkAutoscaler } from '../../children/serving/availability.ts'
import { selectorLabels, labelSelectorText } from '../../children/labels.ts'
import { desiredWorkload, type WorkloadState, workloadState } from '../../sync/workload-state.ts'
import { type SyncFailure, statusOf } from '../../sync/conditions.ts'
import { checkChildNames } from '../../sync/conflicts.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { fieldsOf, type KubeObject, listOf, definedFields } from '../../base/kube.ts'
import { virtualServerNames } from '../../children/names.ts'
import { checkExposure } from '../common/exposure.ts'
import { statusUrl } from '../common/serving-tls.ts'
import { ownIssuerReference } from '../../runtime-config/issuers.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { reportProgress } from '../../sync/progress.ts'
import type { ResolvedBackend } from './config/backends.ts'
import { app } from './children.ts'
import { addressOf, externalAddressOf, type BuiltVirtualServer } from './build.ts'
import { backendStatuses, type Phase, phaseOf, routableCount } from './status/health.ts'
import { checkExcluded } from './status/excluded.ts'
import { checkProblems } from './status/problems.ts'
import { readReports } from './status/report.ts'

type Context = SyncContext<'VirtualMCPServer'>

/** Reasons for failures that resolve on their own. */
const transientReasons: ReadonlySet<string> = new Set(['GroupRefNotReady', 'EmbeddingServerNotReady'])

export function respond(context: Context, built: BuiltVirtualServer): SyncResponse {
  const names = virtualServerNames(context.name)
  const pods = workloadState(
    context.child('Deployment', names.server),
    desiredWorkload(built.children, 'Deployment', names.server),
    context.stored,
  )
  const previous = fieldsOf(context.stored['status'])
  const conflict = checkChildNames(context, built.children)
  const failures = conflict ? [conflict] : built.failures
  const report = context.child('ConfigMap', names.report)
  const reports = readReports(report, built.checksum ?? '')
  const backends: readonly DiscoveredBackend[] =
    built.checksum === undefined
      ? // This function wrote the previous list, so the list has the right form.
        (listOf(previous['discoveredBackends']) as readonly DiscoveredBackend[])
      : backendStatuses(built.backends, reports, previous['discoveredBackends'], (backend) =>
          authTypeOf(built, backend),
        )
  const { phase, message, ready, reason } = failures[0] ? blocked(failures) : phaseOf(pods, backends)
  context.conditions.set('Ready', statusOf(ready), reason, message)
  checkAutoscaler(context, names.server, context.spec.autoscaling)
  checkExposure(context, names.server, {
    'the resourceUrl of oidcConfigRef': ownIssuerReference(context.spec.incomingAuth ?? {})?.resourceUrl,
    'the issuer of authServerConfig': context.spec.authServerConfig?.issuer,
  })
  reportProgress(context, { failures, workloads: [pods] })
  setDiscovery(context, backends.length, built)
  checkReport(context, pods, report)
  checkProblems(context, reports.problems)
  if (built.checksum !== undefined) checkExcluded(context, built.backends, backends)
  return {
    status: definedFields({
      phase,
      message,
      url: statusUrl(context, addressOf(context), built.children),
      externalUrl: externalAddressOf(context),
      backendCount: routableCount(backends),
      replicas: pods?.replicas ?? 0,
      selector: labelSelectorText(selectorLabels(app, context.name)),
      discoveredBackends: backends,
      ...built.hashes,
      ...observedFields(context),
    }),
    children: built.children ?? lastAppliedChildren(context.request),
  }
}

/**
 * Reports missing permissions of a user-supplied service account. Sets the condition only while no pod has reported.
 */
function checkReport(
  { conditions, spec, name }: Context,
  pods: WorkloadState | undefined,
  report: KubeObject | undefined,
): void {
  const { serviceAccount } = spec
  const hasNoReport = Object.keys(fieldsOf(report?.['data'])).length === 0
  if (serviceAccount === undefined || !pods?.availableReplicas || !hasNoReport) return
  conditions.set(
    'BackendHealthReported',
    'False',
    'NoReport',
    `No pod has reported the health of backends: grant ServiceAccount ${serviceAccount} get and patch on ConfigMap ${virtualServerNames(name).report}`,
  )
}

function blocked(failures: readonly SyncFailure[]): Phase {
  const message = failures.map((failure) => failure.message).join('; ')
  const pending = failures.every((failure) => transientReasons.has(failure.reason))
  return {
    phase: pending ? 'Pending' : 'Failed',
    ready: false,
    reason: failures[0]?.reason ?? 'DeploymentNotReady',
    message,
  }
}

function setDiscovery(context: Context, count: number, { checksum }: BuiltVirtualServer): void {
  if (checksum === undefined) return
  context.conditions.set('BackendsDiscovered', 'True', 'BackendsDiscovered', `${count} backends in the group`)
}

/** Returns undefined while the strategy is unknown, because a broken reference does not mean "unauthenticated". */
function authTypeOf(
  { defaultStrategy }: BuiltVirtualServer,
  { strategy, failure }: ResolvedBackend,
): string | undefined {
  return failure ? undefined : ((strategy ?? defaultStrategy)?.type ?? 'unauthenticated')
}
