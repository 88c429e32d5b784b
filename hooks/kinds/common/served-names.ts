/** Names of what stands beside the workload of a server that clients reach, of a spec that nobody has checked yet. */
import { type Fields, isFields } from '../../base/kube.ts'
import type { HookSettings } from '../../base/settings.ts'
import type { ChildNames, servedKinds } from '../../sync/child-kinds.ts'

/** All of them are called like the workload. */
export function servedNames(
  { exposure, autoscaling, replicas }: Fields,
  name: string,
  settings: HookSettings,
): ChildNames<(typeof servedKinds)[number]> {
  const own = isFields(exposure) ? exposure : undefined
  const isScaled = isFields(autoscaling)
  return {
    PodDisruptionBudget: isScaled || maybeSeveral(replicas) ? [name] : [],
    HorizontalPodAutoscaler: isScaled ? [name] : [],
    HTTPRoute: own?.['gateway'] !== undefined && settings.gatewayApi ? [name] : [],
    Ingress: own && own['gateway'] === undefined ? [name] : [],
  }
}

/** True when a workload of this count can have several pods; without one, somebody else decides. */
export function maybeSeveral(replicas: unknown): boolean {
  return typeof replicas !== 'number' || replicas > 1
}
