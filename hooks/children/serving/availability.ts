/**
 * Keeps a server available when nodes are drained or the load changes, with a disruption budget, topology spread,
 * graceful termination and an autoscaler.
 *
 * Only the autoscaler is configurable; the other parts have a single correct form. Lists contain every field that the
 * API server would default, because each list is compared as a whole.
 * Source: Kubernetes policy/v1, autoscaling/v2.
 */
import type { Autoscaling, ServerAutoscaling } from '../../../schemas/index.ts'
import { fieldsOf, type KubeObject, type StringMap } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type ChildMeta, childMeta } from '../objects.ts'

/** Settings for both kinds of autoscaling. */
export type Scaling = Pick<ServerAutoscaling, 'targetSessions'> & Autoscaling

/** Desired number of pods. */
export interface DesiredReplicas {
  readonly replicas?: number | undefined
  readonly autoscaling?: Scaling | undefined
}

/** Returns the maximum number of pods, if known. `observed` is used when another controller scales the workload. */
export function mostReplicas({ replicas, autoscaling }: DesiredReplicas, observed?: KubeObject): number {
  const present = fieldsOf(observed?.['spec'])['replicas']
  return autoscaling?.maxReplicas ?? replicas ?? (typeof present === 'number' ? present : 1)
}

export interface Scaled extends DesiredReplicas {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly selector: StringMap
  /** The container for which the autoscaler measures CPU usage. The CPU usage of sidecars that users add is ignored. */
  readonly container: string
  readonly observed: KubeObject | undefined
}

/** Returns one workload's disruption budget and autoscaler, which have the workload's name. */
export function availability(meta: ChildMeta, workload: Scaled): KubeObject[] {
  const { autoscaling, observed, selector } = workload
  return [
    ...(mostReplicas(workload, observed) > 1 ? [disruptionBudget(meta, selector)] : []),
    ...(autoscaling ? [autoscaler(meta, workload, autoscaling)] : []),
  ]
}

/** Allows the eviction of one pod at a time, and of unready pods at any time. Neither rule blocks a node drain. */
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

/** Targets the Deployment. Scaling the resource would write `spec.replicas`, which a GitOps tool would revert. */
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
        // Sessions and streams end when their pod does, so a short lull must not trigger a scale-down.
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
 * Spreads pods across nodes and zones where possible. The constraints do not depend on the number of pods. Otherwise,
 * adding a pod would change the template and replace all pods.
 */
export function topologySpread(selector: StringMap): readonly object[] {
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: selector },
  }))
}

/** Grace period of generated pods, in seconds. */
export const terminationSeconds = 60
/**
 * Seconds that the pod keeps serving after termination starts, so that every node can remove the pod from its
 * endpoints.
 */
const endpointRemovalSeconds = 5

/**
 * `preStop` hook for containers that use the runtime image. The rest of the grace period is reserved for requests in
 * flight.
 */
export const preStopDelay = { preStop: { sleep: { seconds: endpointRemovalSeconds } } } as const
export const shutdownGrace = `${terminationSeconds - 2 * endpointRemovalSeconds}s`

/**
 * Copies the reason for an inactive autoscaler into a condition. Does nothing without an autoscaler, or before its
 * first check.
 */
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
    'The HorizontalPodAutoscaler controls the number of pods',
  )
}
