/** Small conversions that several answers need. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** `{ [name]: value }` where there is a value, for members that are left out otherwise. */
export function given<K extends string, V>(name: K, value: V | undefined): { readonly [N in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [N in K]: V })
}
