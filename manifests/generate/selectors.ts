/** What finds the pods of an installation. */
export type Component = 'hooks' | 'certificates' | 'metacontroller' | 'admission' | 'controllers' | 'test'

/** Labels that never change, for selectors. */
export function selector(component: Component): Record<string, string> {
  return { 'app.kubernetes.io/name': `gatehouse-${component}`, 'app.kubernetes.io/component': component }
}

/** Pods of the hooks server, on different nodes and in different zones where that can be had. */
export const hooksSpread = ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: 'ScheduleAnyway',
  labelSelector: { matchLabels: selector('hooks') },
}))
