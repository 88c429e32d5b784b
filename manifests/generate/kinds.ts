/**
 * The data that the manifests need about each kind: its plural and the objects that its hooks create or read.
 *
 * The module derives the data from the schemas and the hooks' registry, so a new kind automatically gets its
 * controller, admission rule and permissions. Converts hook kinds to resources (plurals), which the API server and
 * Metacontroller use.
 */

/** One resource, as named in RBAC and Metacontroller. */
export interface WatchedResource {
  /** `apps/v1`, or `v1` for core resources. */
  readonly apiVersion: string
  /** Plural, in lowercase. */
  readonly resource: string
}

export interface Child extends WatchedResource {
  readonly updateStrategy: 'InPlace' | 'OnDelete'
  /** Setting below `integrations` that enables the kind. A controller fails if the cluster does not have the kind. */
  readonly integration?: string
}

/** A kind in the API, with or without hooks. */
export interface ManifestKind {
  readonly kind: string
  readonly plural: string
  readonly description: string
  /**
   * True when the kind's status reports the number of referrers. Admission then reviews deletions, and rejects or warns
   * when the object is in use.
   */
  readonly isDeletionReviewed: boolean
}

/** A kind that hooks reconcile. */
export interface HookedKind {
  readonly kind: string
  readonly plural: string
  readonly children: readonly Child[]
  readonly related: readonly WatchedResource[]
}

/** Input for every generated file. */
export interface FilesInput {
  readonly version: string
  readonly kinds: readonly ManifestKind[]
  readonly hooked: readonly HookedKind[]
  /** File names in manifests/crds, which schemas/generate writes. */
  readonly crds: readonly string[]
}

/** Returns the API group of an apiVersion; '' for core. */
export function groupOf(resource: Pick<WatchedResource, 'apiVersion'>): string {
  return resource.apiVersion.includes('/') ? (resource.apiVersion.split('/')[0] ?? '') : ''
}

/** Returns unique resources, sorted by group and plural. */
export function distinct<R extends WatchedResource>(resources: readonly R[]): readonly R[] {
  const byKey = new Map(
    resources.map((entry) => [`${groupOf(entry)} ${entry.resource} ${entry.apiVersion}`, entry]),
  )
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}
