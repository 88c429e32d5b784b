/**
 * Reads the hooks' registry: the one place where the manifests learn which kinds there are.
 */
import { hookSettings, makeHooks } from '../../hooks/index.ts'
import type { KindEntry } from './kinds.ts'

/** Every registered kind, in the registry's order. The settings of an installation do not change what is listed. */
export function registeredKinds(version: string): readonly KindEntry[] {
  const registry = makeHooks(hookSettings({ runtimeImage: 'unused', version }))
  return [...registry].map((entry) => ({
    kind: entry.kind,
    plural: entry.plural,
    children: entry.childKinds,
    related: entry.relatedKinds,
    deleteGuarded: true,
  }))
}
