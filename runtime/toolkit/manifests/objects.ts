/** Defines the Kubernetes objects in the local cluster, and their keys. */
export interface Metadata {
  name: string
  namespace?: string
  uid?: string
  generation?: number
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[]
}

export interface LocalObject {
  apiVersion: string
  kind: string
  metadata: Metadata
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
  data?: Record<string, string>
  [field: string]: unknown
}

/** Returns `Kind.group/version`, or `Kind.version` for core kinds: the group key in Metacontroller's requests. */
export function groupKey(object: { apiVersion: string; kind: string }): string {
  return `${object.kind}.${object.apiVersion}`
}

/** Returns an object's unique key in the local cluster. */
export function objectKey(object: LocalObject): string {
  return `${groupKey(object)} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

/** Returns `namespace/name`, the key within one group of a v2 hook request. */
export function namespacedName(object: LocalObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`
}
