/** Names of the objects that accompany the workload of an exposed server. The spec may be invalid. */
import { type Fields, isFields } from '../../base/kube.ts'
import type { HookSettings } from '../../base/settings.ts'
import type { ChildNames, servedKinds } from '../../sync/child-kinds.ts'

/** Returns the names of these objects. Each name equals the workload's name. */
export function servedNames(
  { exposure, autoscaling, replicas }: Fields,
  name: string,
  settings: HookSettings,
): ChildNames<(typeof servedKinds)[number]> {
  const own = isFields(exposure) ? exposure : undefined
  const isScaled = isFields(autoscaling)
  return {
    PodDisruptionBudget: isScaled || canHaveSeveralPods(replicas) ? [name] : [],
    HorizontalPodAutoscaler: isScaled ? [name] : [],
    HTTPRoute: own?.['gateway'] !== undefined && settings.gatewayApi ? [name] : [],
    Ingress: own && own['gateway'] === undefined ? [name] : [],
  }
}

/**
 * True if a workload with this replica count can have several pods. Without a count, another controller determines the
 * number of replicas.
 */
export function canHaveSeveralPods(replicas: unknown): boolean {
  return typeof replicas !== 'number' || replicas > 1
}
