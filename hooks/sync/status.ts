/** Builds the parts of a status that every kind has. */
import type { AnyContext } from './context.ts'
import type { Fields } from '../base/kube.ts'

/** Returns `observedGeneration` and `conditions`. Metacontroller injects the same generation. */
export function observedFields(context: AnyContext): Fields {
  const { generation } = context.stored.metadata
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: context.conditions.list(),
  }
}

/** Formats a label selector for the scale subresource. */
export function labelSelectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}
