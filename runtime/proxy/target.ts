/** How a request's path and query map to the target's. */
import type { Target } from '../config/index.ts'

export type { Target }

/** The request target for the upstream: path as sent, both queries joined. */
export function targetPath(target: Target, path: string, query: string): string {
  if (target.query === '') return query === '' ? path : `${path}?${query}`
  return query === '' ? `${path}?${target.query}` : `${path}?${target.query}&${query}`
}
