/**
 * EmbeddingServer: runs a text embedding server for the optimizer.
 *
 * Volume claim templates of a StatefulSet are immutable. If the requested model cache differs from the running one, the
 * old template stays in place, and a condition asks the user to recreate the object.
 */
import { childKindsOf, type ChildNames } from '../../sync/child-kinds.ts'
import { desiredWorkload, workloadState } from '../../sync/workload-state.ts'
import { sizeFailure } from '../../children/size.ts'
import { type SyncFailure, statusOf } from '../../sync/conditions.ts'
import { checkChildNames } from '../../sync/conflicts.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { lastAppliedChildren } from '../../sync/last-applied.ts'
import { fieldsOf, isTerminating, definedFields } from '../../base/kube.ts'
import { embeddingNames, serviceUrl } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { checkPodTemplate, mergeFailure, templateFailure } from '../common/pod-template.ts'
import { specFailure } from '../../references/resolve.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated, relatedRules } from '../../sync/rules.ts'
import { secretNamesIn } from '../../references/secret-names.ts'
import { reportProgress } from '../../sync/progress.ts'
import { childrenOf, checkModelCache, podTemplate } from './children.ts'
import { embeddingViolations } from './validate.ts'

type Context = SyncContext<'EmbeddingServer'>

const children = ['ServiceAccount', 'Service', 'StatefulSet'] as const

export const embeddingServer: KindHooks<'EmbeddingServer'> = {
  kind: 'EmbeddingServer',
  childKinds: childKindsOf(children),
  relatedKinds: [coreRelated.Secret, ...childKindsOf(children)],
  validate: embeddingViolations,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest): CustomizeResponse {
  const { server } = embeddingNames(parent.metadata.name)
  return relatedRules(parent, {
    secrets: secretNamesIn(parent['spec']),
    own: { ServiceAccount: [server], Service: [server], StatefulSet: [server] } satisfies ChildNames<
      (typeof children)[number]
    >,
  })
}

function sync(context: SyncContext<'EmbeddingServer'>): SyncResponse {
  const invalid = specFailure(context.violations, 'ConfigInvalid')
  context.conditions.check('Valid', invalid, 'ConfigValid', 'Spec validation passed')
  if (invalid) {
    checkPodTemplate(context.conditions, templateFailure(context.violations))
    return respond(context, undefined, [invalid])
  }
  checkModelCache(context)
  const pod = podTemplate(context)
  const template = pod.violations && mergeFailure(pod.violations)
  checkPodTemplate(context.conditions, template)
  const children = pod.template && childrenOf(context, pod.template)
  const size = children && sizeFailure(children)
  const failures = [template, secretFailure(context), size].filter((failure) => failure !== undefined)
  return respond(context, failures.length === 0 ? children : undefined, failures)
}

function secretFailure(context: Context): SyncFailure | undefined {
  const ref = context.parent.spec.hfTokenSecretRef
  return context.missingSecretsFailure(ref ? [ref] : [], 'SecretNotFound')
}

function respond(
  context: Context,
  desired: SyncResponse['children'] | undefined,
  found: readonly SyncFailure[],
): SyncResponse {
  const { name, namespace, settings } = context
  const { server } = embeddingNames(name)
  const conflict = checkChildNames(context, desired)
  const state = workloadState(
    context.child('StatefulSet', server),
    desiredWorkload(desired, 'StatefulSet', server),
    context.stored,
  )
  const failures = conflict ? [conflict] : found
  const { phase, message } = phaseOf(context, state, failures)
  context.conditions.set(
    'Ready',
    statusOf(phase === 'Ready'),
    phase === 'Ready' ? 'Ready' : 'NotReady',
    message,
  )
  reportProgress(context, { failures, workloads: [state] })
  const port = fieldsOf(context.parent.spec)['port']
  return {
    status: definedFields({
      phase,
      message,
      url: serviceUrl(server, namespace, settings.clusterDomain, typeof port === 'number' ? port : 8080),
      readyReplicas: state?.readyReplicas ?? 0,
      ...observedFields(context),
    }),
    children: desired ?? lastAppliedChildren(context.request),
  }
}

function phaseOf(
  context: Context,
  state: ReturnType<typeof workloadState>,
  failures: readonly SyncFailure[],
) {
  if (isTerminating(context.stored))
    return { phase: 'Terminating', message: 'The embedding server is being deleted' }
  if (failures.length > 0)
    return { phase: 'Failed', message: failures.map((failure) => failure.message).join('; ') }
  if (state && state.readyReplicas > 0) return { phase: 'Ready', message: 'The embedding server is running' }
  if (state?.failure !== undefined) return { phase: 'Failed', message: state.failure }
  if (state)
    return { phase: 'Downloading', message: 'The embedding server is starting or downloading its model' }
  return { phase: 'Pending', message: 'The embedding server is being created' }
}
