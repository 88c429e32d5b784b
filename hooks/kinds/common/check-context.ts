/** Creates contexts that check an object on its own, without references or children. */
import type { KindName, Kinds } from '../../../schemas/index.ts'
import type { KubeObject } from '../../base/kube.ts'
import { type CheckSettings, defaultSettings } from '../../base/settings.ts'
import { SyncContext } from '../../sync/context.ts'

/**
 * Creates the context for a resource that matches its schema. Always generates the pods for a cluster, even in
 * `gatehouse dev`.
 */
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
