/** JSON pointers (RFC 6901) of exceptions: each covers all beneath it, and the segment `*` stands for any one. */

/** Segments, unescaped; undefined stands for any one. */
export type PointerPattern = readonly (string | undefined)[]

export function pointerPattern(pointer: string): PointerPattern {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => (segment === '*' ? undefined : segment.replaceAll('~1', '/').replaceAll('~0', '~')))
}

/** True when a value at these names and indices lies at or beneath the pointer. */
export function covers(pattern: PointerPattern, path: readonly (string | number)[], depth: number): boolean {
  if (pattern.length > depth) return false
  return pattern.every((segment, k) => segment === undefined || segment === String(path[k]))
}
