/**
 * Shapes of the Kubernetes objects that hooks read and write.
 *
 * Only the fields that a hook needs are typed. All other fields stay `unknown` and are read through type guards,
 * because hook requests are untrusted.
 */
export { type Fields, fieldsOf, isFields, listOf } from '../../schemas/index.ts'

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

export type StringMap = Readonly<Record<string, string>>

export interface KubeMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly generation?: number
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: StringMap
  readonly annotations?: StringMap
  readonly ownerReferences?: readonly OwnerReference[]
}

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: KubeMeta
  readonly [field: string]: unknown
}

/** True while the object is being deleted. */
export function isTerminating(object: {
  readonly metadata: { readonly deletionTimestamp?: unknown }
}): boolean {
  return object.metadata.deletionTimestamp !== undefined && object.metadata.deletionTimestamp !== null
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function filledTextOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The type `T` without undefined field values. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Drops undefined fields so that the object equals the one stored by the API server. */
export function definedFields<T extends object>(fields: T): Defined<T>
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
