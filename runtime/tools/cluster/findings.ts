/** Derives findings about an object from its facts, in causal order. Pure. */
import { workloadState } from '../../../hooks/index.ts'
import { type Fields, isKindName } from '../../../schemas/index.ts'
import { eventFindings } from './events.ts'
import { stepOf, type WhyFinding } from './finding.ts'
import type { ObjectFacts, ReadReference, Workload } from './facts.ts'
import { podProblem } from './pods.ts'
import { problemsOf, stateOf } from './state.ts'
import { at, listAt, textAt } from '../../toolkit/cluster/objects.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'
import { clusterCodes } from '../../toolkit/cluster/codes.ts'
import { conditionsOf, isWarning, type ResourceCondition } from '../../toolkit/cluster/conditions.ts'

/** `why` is the command that explains another object in the namespace, without the object's name. */
export function findingsOf(facts: ObjectFacts, why: string, now = Date.now()): readonly WhyFinding[] {
  return [
    ...specFindings(facts, now),
    ...facts.references.map((reference) => referenceFinding(facts, reference, why)),
    ...memberFindings(facts, why),
    ...facts.workloads.flatMap(workloadFindings),
    ...eventFindings(facts, now),
    ...backendFindings(facts.object),
    ...facts.withoutRight.map((right) => noRight(facts, right)),
  ]
}

function noRight({ namespace }: ObjectFacts, right: string): WhyFinding {
  return {
    section: 'rights',
    object: `namespace ${namespace}`,
    result: 'unknown',
    message: `no permission to ${right}`,
  }
}

function specFindings(facts: ObjectFacts, now: number): readonly WhyFinding[] {
  const object = labelOf(facts.kind.kind, facts.name)
  const state = stateOf(facts.object, now)
  if (state.reason === 'NotReconciled' || state.reason === 'NotObserved') {
    const isStale = state.reason === 'NotReconciled'
    const step = isStale
      ? `${clusterCodes['cluster.stale'].fix} Run "gatehouse doctor --cluster" to check the installation.`
      : 'wait a few seconds, then run this command again'
    return [
      {
        section: 'spec',
        object,
        result: isStale ? 'failed' : 'warning',
        reason: state.reason,
        message: state.message,
        step,
      },
    ]
  }
  const found = problemsOf(facts.object)
    .filter((condition) => !isOfPods(condition) && !isRepeated(condition, facts.object))
    .map(
      (condition): WhyFinding => ({
        section: 'spec',
        object,
        result: isWarning(condition) ? 'warning' : 'failed',
        reason: condition.reason,
        message: condition.message,
        ...stepOf(condition.reason),
      }),
    )
  return found.length > 0
    ? found
    : [{ section: 'spec', object, result: 'ok', message: 'the object’s conditions report no error' }]
}

/** Reasons that pods and backends explain in more detail. */
const ofPods: ReadonlySet<string> = new Set(['DeploymentFailed', 'DeploymentNotReady', 'RolloutStalled'])

function isOfPods({ reason }: ResourceCondition): boolean {
  return ofPods.has(reason)
}

/** Ready, Reconciling and Stalled repeat the reason of another condition. */
function isRepeated({ type, reason }: ResourceCondition, object: Fields): boolean {
  return (
    ['Ready', 'Reconciling', 'Stalled'].includes(type) &&
    conditionsOf(object).some(
      (other) => other.reason === reason && !['Ready', 'Reconciling', 'Stalled'].includes(other.type),
    )
  )
}

function labelOf(kind: string, name: string): string {
  return `${kind} ${name}`
}

function referenceFinding(facts: ObjectFacts, { kind, name, found }: ReadReference, why: string): WhyFinding {
  const base = { section: 'refers to', object: labelOf(kind, name) } as const
  if (found === 'forbidden')
    return {
      ...base,
      result: 'unknown',
      message: `no permission to get this object in namespace ${facts.namespace}`,
    }
  if (found === 'absent') {
    const isReady = stateOf(facts.object).ready === 'True'
    const step = 'create this object in the same namespace, or correct the name'
    return {
      ...base,
      result: isReady ? 'warning' : 'failed',
      reason: 'NotFound',
      message: 'does not exist',
      step,
    }
  }
  if (!isKindName(kind)) return { ...base, result: 'ok', message: 'exists' }
  return { ...base, ...otherState({ kind, name }, found, why) }
}

/** Describes another Gatehouse resource: its reason, and the command that explains it. */
function otherState(
  { kind, name }: { readonly kind: string; readonly name: string },
  object: Fields,
  why: string,
): Pick<WhyFinding, 'result' | 'reason' | 'message' | 'step'> {
  const { ready, reason, message } = stateOf(object)
  if (ready === 'True') return { result: 'ok', message: 'ready' }
  const step = [stepOf(reason).step, `${why} ${kind.toLowerCase()}/${name}`]
    .filter((part) => part !== undefined)
    .join('; ')
  return { result: ready === 'False' ? 'failed' : 'warning', reason, message, step }
}

function memberFindings(
  { members, kind, name, references }: ObjectFacts,
  why: string,
): readonly WhyFinding[] {
  const isGroup = kind.kind === 'MCPGroup'
  const known = references.find((reference) => reference.kind === 'MCPGroup')
  if (!members || (!isGroup && typeof known?.found === 'string')) return []
  const found = members.map(({ kind, object }) => {
    const name = textAt(object, 'metadata', 'name') ?? ''
    const state = otherState({ kind, name }, object, why)
    return { section: 'refers to', object: labelOf(kind, name), ...state } as const
  })
  const bad = found.filter(({ result }) => result !== 'ok')
  const group = isGroup ? labelOf(kind.kind, name) : 'its group'
  const summary = `${quantity(found.length, 'member')}, ${found.length - bad.length} ready`
  // A member that is not ready makes one backend unavailable but does not affect the other backends.
  return [
    { section: 'refers to', object: group, result: found.length > 0 ? 'ok' : 'warning', message: summary },
    ...bad.map((finding): WhyFinding => ({ ...finding, result: 'warning' })),
  ]
}

function workloadFindings({ kind, object, pods }: Workload): readonly WhyFinding[] {
  const name = textAt(object, 'metadata', 'name') ?? ''
  const own = labelOf(kind, name)
  const state = workloadState(
    { ...object, apiVersion: 'apps/v1', kind, metadata: { name, generation: generationOf(object) } },
    undefined,
  )
  const ready = `${state?.readyReplicas ?? 0} of ${state?.replicas ?? 1} pods are ready`
  const workload = { section: 'workload', object: own } as const
  const stuck = state?.failure
  const reason = failedReason(object)
  const head: WhyFinding =
    stuck !== undefined
      ? { ...workload, result: 'failed', reason, message: `${ready}: ${stuck}`, ...stepOf(reason) }
      : state?.isComplete
        ? { ...workload, result: 'ok', message: ready }
        : {
            ...workload,
            result: 'warning',
            reason: 'RolloutInProgress',
            message: `${ready}, the rollout is in progress`,
            step: 'wait, then run this command again: pods are being created or replaced',
          }
  return [head, ...podFindings(typeof pods === 'string' ? [] : pods)]
}

function generationOf(object: Fields): number {
  const generation = at(object, 'metadata', 'generation')
  return typeof generation === 'number' ? generation : 0
}

function failedReason(object: Fields): string {
  const isRejected = listAt(object, 'status', 'conditions').some(
    (condition) => condition['type'] === 'ReplicaFailure' && condition['status'] === 'True',
  )
  return isRejected ? 'FailedCreate' : 'ProgressDeadlineExceeded'
}

/** Maximum number of pods to describe per workload. Additional pods are only counted. */
const maxPods = 10

function podFindings(pods: readonly Fields[]): readonly WhyFinding[] {
  const bad = pods.flatMap((pod) => {
    const problem = podProblem(pod)
    return problem ? [{ pod, problem }] : []
  })
  const sorted = bad.toSorted(
    (a, b) => Number(a.problem.isPassing ?? false) - Number(b.problem.isPassing ?? false),
  )
  const found = sorted.slice(0, maxPods).map(({ pod, problem }): WhyFinding => {
    const { reason, message, container = '', isPassing = false } = problem
    const name = textAt(pod, 'metadata', 'name') ?? ''
    const namespace = textAt(pod, 'metadata', 'namespace') ?? ''
    const step = stepOf(reason)
      .step?.replace('logs POD', `logs -n ${namespace} ${name}`)
      .replace('CONTAINER', container)
    return {
      section: 'pod',
      object: labelOf('Pod', name),
      result: isPassing ? 'warning' : 'failed',
      reason,
      message,
      ...(step !== undefined && { step }),
    }
  })
  const more = sorted.length - found.length
  return more === 0
    ? found
    : [
        ...found,
        { section: 'pod', object: 'other pods', result: 'warning', message: `${more} more are not ready` },
      ]
}

function backendFindings(object: Fields): readonly WhyFinding[] {
  const backends = listAt(object, 'status', 'discoveredBackends')
  const bad = backends.filter(({ status }) => status !== 'ready')
  const good = backends.length - bad.length
  const found = bad.map(
    (backend): WhyFinding => ({
      section: 'backend',
      object: textAt(backend, 'name') ?? '',
      result: 'warning',
      reason: textAt(backend, 'status') ?? 'unknown',
      message: textAt(backend, 'message') ?? '',
    }),
  )
  if (backends.length === 0) return []
  return [
    ...found,
    {
      section: 'backend',
      object: 'backends',
      result: 'ok',
      message: `${good} of ${backends.length} are ready`,
    },
  ]
}
