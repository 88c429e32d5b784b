/** Reads exports from other modules: the kinds in the API, and the hooks' registry. */
import { defaultSettings, makeHooks } from '../../hooks/index.ts'
import { kinds } from '../../schemas/index.ts'
import type { HookedKind, ManifestKind } from './kinds.ts'

/** Status fields that list the objects that use this object or, for a group, its members. */
const countsOfUse: ReadonlySet<string> = new Set(['.status.referenceCount', '.status.serverCount'])

/** Returns every kind in the API, sorted by name. */
export function allKinds(): readonly ManifestKind[] {
  return kinds.map(({ kind, plural, description, columns }) => ({
    kind,
    plural,
    description,
    isDeletionReviewed: columns.some(({ jsonPath }) => countsOfUse.has(jsonPath)),
  }))
}

/** Returns every kind that has hooks, in the registry's order. An installation's settings do not affect the list. */
export function hookedKinds(): readonly HookedKind[] {
  return [...makeHooks(defaultSettings)].map(({ kind, plural, childKinds, relatedKinds }) => ({
    kind,
    plural,
    children: childKinds,
    related: relatedKinds,
  }))
}
