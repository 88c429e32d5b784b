/**
 * Objects without members that are undefined.
 */

/** The same object without the members that are undefined. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Members that are undefined are left out, so that nothing differs from what the API server stores. */
export function definedFields<T extends object>(fields: T): Defined<T>
export function definedFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
