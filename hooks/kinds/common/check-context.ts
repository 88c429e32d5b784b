/** The context in which one object is checked by itself: nothing that it refers to, and nothing that it owns, is known. */
import type { KindName, Kinds } from '../../../schemas/index.ts'
import type { KubeObject } from '../../kube.ts'
import { type CheckSettings, defaultSettings } from '../../settings.ts'
import { SyncContext } from '../../sync/context.ts'

/** A context for a resource that has passed its schema. Pods are those of a cluster, also for the command line. */
export function checkContext<K extends KindName>(
  resource: Kinds[K],
  kind: K,
  settings: CheckSettings,
): SyncContext<K> {
  const request = {
    parent: resource as unknown as KubeObject,
    children: new Map(),
    related: new Map(),
    finalizing: false,
  }
  const options = {
    settings: { ...defaultSettings, ...settings, localCommands: false },
    violationsOf: () => [],
  }
  return new SyncContext(request, options, kind)
}
