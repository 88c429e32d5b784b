/**
 * Parts of a status that every kind has.
 */
import type { AnyContext } from './context.ts'
import type { Fields } from './kube.ts'

/** `observedGeneration` and `conditions`. Metacontroller injects the generation too, with the same value. */
export function observedFields(context: AnyContext): Fields {
  const { generation } = context.stored.metadata
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: context.conditions.list(),
  }
}

/** The same object without the members that are undefined. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Members that are undefined are left out, so that nothing differs from what the API server stores. */
export function definedFields<T extends object>(fields: T): Defined<T>
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A label selector as text, for the scale subresource. */
export function labelSelectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}
