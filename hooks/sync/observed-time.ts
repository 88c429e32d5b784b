/**
 * Determines the time that a hook may use: the newest time in its own request.
 *
 * A hook has no clock, because the same request must produce the same bytes. The API server records the time of every
 * write in `metadata.managedFields`. The newest timestamp is therefore the time of the change that caused the call.
 * This time becomes the transition time of the conditions that change. If there are no timestamps (manifests rendered
 * offline), the time is the epoch.
 */
import { fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'
import type { SyncRequest } from './protocol.ts'

const epoch = '1970-01-01T00:00:00Z'
const timestampForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** True for an RFC 3339 date and time. */
export function isTimestamp(value: unknown): value is string {
  return typeof value === 'string' && timestampForm.test(value) && !Number.isNaN(Date.parse(value))
}

/** Returns the newest timestamp of the parent, its children and its related objects: RFC 3339, UTC, whole seconds. */
export function observedTime(request: SyncRequest): string {
  let newest = Number.NEGATIVE_INFINITY
  const addTime = (value: unknown) => {
    if (!isTimestamp(value)) return
    const time = Date.parse(value)
    if (time > newest) newest = time
  }
  addTimesOf(request.parent, addTime)
  for (const groups of [request.children, request.related]) {
    for (const objects of groups.values()) for (const object of objects) addTimesOf(object, addTime)
  }
  return Number.isFinite(newest) ? `${new Date(newest).toISOString().slice(0, 19)}Z` : epoch
}

function addTimesOf(object: KubeObject, addTime: (value: unknown) => void): void {
  addTime(object.metadata.creationTimestamp)
  addTime(object.metadata.deletionTimestamp)
  for (const entry of listOf(fieldsOf(object.metadata)['managedFields'])) addTime(fieldsOf(entry)['time'])
  for (const condition of listOf(fieldsOf(object['status'])['conditions'])) {
    if (isFields(condition)) addTime(condition['lastTransitionTime'])
  }
}
