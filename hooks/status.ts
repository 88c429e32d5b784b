/**
 * Parts of a status that every kind has.
 */
import type { SyncContext } from './context.ts'
import type { Resource } from './context.ts'
import type { Fields } from './kube.ts'

/** `observedGeneration` and `conditions`. Metacontroller injects the generation too, with the same value. */
export function observedFields(context: SyncContext<Resource>): Fields {
  const { generation } = context.stored.metadata
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: context.conditions.list(),
  }
}

/** Members that are undefined are left out, so that nothing differs from what the API server stores. */
export function definedFields(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A label selector as text, for the scale subresource. */
export function labelSelectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}
