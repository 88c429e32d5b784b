/** Runs the hooks on manifests offline, in an in-memory cluster whose workloads are always ready. */
import { LocalCluster } from './cluster.ts'
import type { LocalObject } from '../../manifests/objects.ts'
import { checkManifests, describeViolations } from '../../manifests/check.ts'
import { standardText } from '../../terminal/input.ts'
import { readManifests } from '../../manifests/read.ts'
import { runtimeImage, version } from '../../terminal/self.ts'
import { podTemplateOf, replicasOf } from '../pods.ts'
import { workloadStatus } from '../session.ts'

export type SettledCluster =
  | { readonly cluster: LocalCluster; readonly invalid?: undefined }
  /** The problems with the manifests, as text. */
  | { readonly cluster?: undefined; readonly invalid: string }

/** Rejects with INVALID_CONFIG when a path cannot be read. `option` is the flag that specified the paths. */
export async function settledCluster(
  paths: readonly string[],
  image: string = runtimeImage,
  option = '-f',
): Promise<SettledCluster> {
  const hooks = await import('../../../../hooks/index.ts')
  const manifests = readManifests(paths, () => standardText(option))
  const checked = checkManifests(manifests, {
    validate: hooks.validateResource,
    references: hooks.referenceCheck,
  })
  if (checked.some(({ violations }) => violations.length > 0)) return { invalid: describeViolations(checked) }
  // Include HTTPRoutes. The ExposureReady condition shows when an installation does not support HTTPRoutes.
  const settings = hooks.hookSettings({ runtimeImage: image, version, gatewayApi: true })
  const cluster = new LocalCluster(hooks.makeHooks(settings), () => new Date(0))
  cluster.declare(manifests.map(({ doc }) => doc as LocalObject))
  settle(cluster)
  return { cluster }
}

/** Runs the hooks with every workload ready, until nothing changes. */
function settle(cluster: LocalCluster): void {
  for (let changed = true; changed; ) {
    cluster.reconcile()
    changed = false
    for (const object of cluster.objects) {
      if (!podTemplateOf(object) || replicasOf(object) === 0) continue
      changed = cluster.setStatus(object, workloadStatus(object, 1)) || changed
    }
  }
}
