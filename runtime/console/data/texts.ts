/** Conversions shared by several responses. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Returns `{ [name]: value }`, or an empty object when the value is undefined. */
export function given<K extends string, V>(name: K, value: V | undefined): { readonly [N in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [N in K]: V })
}
