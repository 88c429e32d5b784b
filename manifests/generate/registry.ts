/**
 * Reads what the other modules publish: the kinds of the API, and the hooks' registry.
 */
import { defaultSettings, makeHooks } from '../../hooks/index.ts'
import { kinds } from '../../schemas/index.ts'
import type { HookedKind, ManifestKind } from './kinds.ts'

/** What a status says of who uses the object: of a group, its members. */
const countsOfUse: ReadonlySet<string> = new Set(['.status.referenceCount', '.status.serverCount'])

/** Every kind of the API, sorted by name. */
export function allKinds(): readonly ManifestKind[] {
  return kinds.map(({ kind, plural, description, columns }) => ({
    kind,
    plural,
    description,
    isDeletionReviewed: columns.some(({ jsonPath }) => countsOfUse.has(jsonPath)),
  }))
}

/** Every kind with hooks, in the registry's order. The settings of an installation do not change what is listed. */
export function hookedKinds(): readonly HookedKind[] {
  return [...makeHooks(defaultSettings)].map(({ kind, plural, childKinds, relatedKinds }) => ({
    kind,
    plural,
    children: childKinds,
    related: relatedKinds,
  }))
}
