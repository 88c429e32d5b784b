/** JSON pointers (RFC 6901) of exceptions. Each covers everything below it; the segment `*` matches any segment. */

/** Unescaped segments; undefined matches any segment. */
export type PointerPattern = readonly (string | undefined)[]

export function pointerPattern(pointer: string): PointerPattern {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => (segment === '*' ? undefined : segment.replaceAll('~1', '/').replaceAll('~0', '~')))
}

/** True when the value at this path is at or below the pointer. */
export function covers(pattern: PointerPattern, path: readonly (string | number)[], depth: number): boolean {
  if (pattern.length > depth) return false
  return pattern.every((segment, k) => segment === undefined || segment === String(path[k]))
}
