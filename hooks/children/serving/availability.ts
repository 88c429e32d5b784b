/**
 * What keeps a server available while nodes are drained and load changes: disruption budget, spread, a graceful end of
 * pods, autoscaler.
 *
 * None of it is a setting but the autoscaler: where there are several pods, one way is right. Lists are written out with
 * every field that the API server would fill in, for they are compared whole.
 * Source: Kubernetes policy/v1, autoscaling/v2.
 */
import type { Autoscaling, ServerAutoscaling } from '../../../schemas/index.ts'
import { fieldsOf, type KubeObject, type StringMap } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type ChildMeta, childMeta } from '../objects.ts'

/** Either kind of autoscaling. */
export type Scaling = Pick<ServerAutoscaling, 'targetSessions'> & Autoscaling

/** How many pods there are meant to be. */
export interface Count {
  readonly replicas?: number | undefined
  readonly autoscaling?: Scaling | undefined
}

/** The greatest number of pods, as far as it is known; `observed` counts where somebody else decides. */
export function mostReplicas({ replicas, autoscaling }: Count, observed?: KubeObject): number {
  const present = fieldsOf(observed?.['spec'])['replicas']
  return autoscaling?.maxReplicas ?? replicas ?? (typeof present === 'number' ? present : 1)
}

export interface Scaled extends Count {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly selector: StringMap
  /** The container whose use of CPU counts: what others put beside it does not. */
  readonly container: string
  readonly observed: KubeObject | undefined
}

/** Disruption budget and autoscaler of one workload, under its name. */
export function availability(meta: ChildMeta, workload: Scaled): KubeObject[] {
  const { autoscaling, observed, selector } = workload
  return [
    ...(mostReplicas(workload, observed) > 1 ? [disruptionBudget(meta, selector)] : []),
    ...(autoscaling ? [autoscaler(meta, workload, autoscaling)] : []),
  ]
}

/** One pod at a time may be evicted, and one that does not serve always: neither blocks the drain of a node. */
function disruptionBudget(meta: ChildMeta, selector: StringMap): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: childMeta(meta),
    spec: {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: selector },
    },
  }
}

const defaultCpu = 80
const sessionsMetric = 'gatehouse_vmcp_sessions'

/** The target is the Deployment: over the resource, `spec.replicas` would be written, which a repository takes back. */
function autoscaler(meta: ChildMeta, { kind, container }: Scaled, scaling: Scaling): KubeObject {
  const { minReplicas, maxReplicas, targetSessions } = scaling
  const cpu = scaling.targetCPU ?? (targetSessions === undefined ? defaultCpu : undefined)
  const metrics = [
    ...(cpu === undefined
      ? []
      : [
          {
            type: 'ContainerResource',
            containerResource: {
              name: 'cpu',
              container,
              target: { type: 'Utilization', averageUtilization: cpu },
            },
          },
        ]),
    ...(targetSessions === undefined
      ? []
      : [
          {
            type: 'Pods',
            pods: {
              metric: { name: sessionsMetric },
              target: { type: 'AverageValue', averageValue: `${targetSessions}` },
            },
          },
        ]),
  ]
  return {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: childMeta(meta),
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind, name: meta.name },
      minReplicas,
      maxReplicas,
      metrics,
      behavior: {
        // Sessions and streams end with a pod: a short lull takes none away.
        scaleDown: {
          stabilizationWindowSeconds: 300,
          selectPolicy: 'Max',
          policies: [{ type: 'Pods', value: 1, periodSeconds: 120 }],
        },
      },
    },
  }
}

/**
 * Pods on different nodes and zones where that is possible. Whatever their number is: a template that changes with it would
 * replace all pods when one is added.
 */
export function spread(selector: StringMap): readonly object[] {
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: selector },
  }))
}

/** Seconds that a pod of ours has from the decision to end it. */
export const terminationSeconds = 60
/** Requests go on arriving until every node knows that the pod is leaving. */
const leavingSeconds = 5

/** For the container of the runtime image; the time left after it is for requests in flight. */
export const leaving = { preStop: { sleep: { seconds: leavingSeconds } } } as const
export const shutdownGrace = `${terminationSeconds - 2 * leavingSeconds}s`

/** Says why the autoscaler does nothing, in its own words. Absent without one, and while it has not looked yet. */
export function checkAutoscaler(
  context: Pick<SyncContext<never>, 'conditions' | 'child'>,
  name: string,
  autoscaling: Scaling | undefined,
): void {
  if (!autoscaling) return
  const status = fieldsOf(context.child('HorizontalPodAutoscaler', name)?.['status'])
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].map(fieldsOf) : []
  const active = conditions.find(({ type }) => type === 'ScalingActive')
  if (!active) return
  const { reason, message } = active
  const failure = {
    reason: typeof reason === 'string' && reason !== '' ? reason : 'ScalingInactive',
    message: typeof message === 'string' ? message : 'the HorizontalPodAutoscaler is not active',
  }
  context.conditions.check(
    'AutoscalingActive',
    active['status'] === 'True' ? undefined : failure,
    'AutoscalingActive',
    'The HorizontalPodAutoscaler decides the number of pods',
  )
}
