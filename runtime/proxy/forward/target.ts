/** Maps a request's path and query to the target's. */
import type { TargetAddress } from '../../config/index.ts'

/** Returns the request target: the path, followed by both queries joined. */
export function targetPath(
  target: TargetAddress,
  method: string | undefined,
  path: string,
  query: string,
): string {
  const own = ownPath(target, method, path)
  if (target.query === '') return query === '' ? own : `${own}?${query}`
  return query === '' ? `${own}?${target.query}` : `${own}?${target.query}&${query}`
}

const streamPaths: ReadonlySet<string> = new Set(['/sse', '/sse/', '/'])

/**
 * A target with a path has one endpoint. The deprecated HTTP+SSE transport has a second endpoint, which its stream
 * announces.
 */
function ownPath(target: TargetAddress, method: string | undefined, path: string): string {
  if (target.path === undefined) return path
  if (target.transport !== 'sse') return target.path
  return method === 'GET' && streamPaths.has(path) ? target.path : path
}
