/**
 * What the manifests need to know of each kind: its plural, and which other objects its hooks create or read.
 *
 * Filled from the schemas and the hooks' registry, so that a controller, an admission rule or a right is never forgotten when a kind is
 * added. The API server and Metacontroller speak of resources (plurals), hooks of kinds: this is where one becomes the
 * other.
 */

/** One resource as RBAC and Metacontroller name it. */
export interface WatchedResource {
  /** `apps/v1`, or `v1` for core. */
  readonly apiVersion: string
  /** Plural, lower case. */
  readonly resource: string
}

export interface Child extends WatchedResource {
  readonly updateStrategy: 'InPlace' | 'OnDelete'
  /** The setting below `integrations` with which it is managed: a controller fails over a kind that the cluster lacks. */
  readonly integration?: string
}

/** A kind of the API, whether hooks reconcile it or not. */
export interface ManifestKind {
  readonly kind: string
  readonly plural: string
  readonly description: string
  /** Its status counts who uses it: deleting an object in use is refused, or warned of, so admission is asked. */
  readonly isDeletionReviewed: boolean
}

/** A kind that hooks reconcile. */
export interface HookedKind {
  readonly kind: string
  readonly plural: string
  readonly children: readonly Child[]
  readonly related: readonly WatchedResource[]
}

/** What every file is made of. */
export interface FilesInput {
  readonly version: string
  readonly kinds: readonly ManifestKind[]
  readonly hooked: readonly HookedKind[]
  /** File names in manifests/crds, which another generator writes. */
  readonly crds: readonly string[]
}

/** API group of an apiVersion; '' for core. */
export function groupOf(resource: Pick<WatchedResource, 'apiVersion'>): string {
  return resource.apiVersion.includes('/') ? (resource.apiVersion.split('/')[0] ?? '') : ''
}

/** Each resource once, sorted by group and plural. */
export function distinct<R extends WatchedResource>(resources: readonly R[]): readonly R[] {
  const byKey = new Map(resources.map((one) => [`${groupOf(one)} ${one.resource} ${one.apiVersion}`, one]))
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}
