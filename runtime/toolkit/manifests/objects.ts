/**
 * The shapes of Kubernetes objects as the local cluster holds them, and how they are addressed.
 */
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

/** `Kind.group/version`, or `Kind.version` for core kinds: the group key of Metacontroller's requests. */
export function groupKey(object: { apiVersion: string; kind: string }): string {
  return `${object.kind}.${object.apiVersion}`
}

/** Address of an object in the store. */
export function objectKey(object: LocalObject): string {
  return `${groupKey(object)} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

/** `namespace/name`: the key inside one group of a v2 hook request. */
export function namespacedName(object: LocalObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`
}
