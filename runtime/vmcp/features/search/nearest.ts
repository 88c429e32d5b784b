/**
 * Implements semantic search. Finds the vectors nearest to the query's vector. All vectors have length one or zero, so
 * their dot product is the cosine. The distance is 1 - cosine, from 0 (identical) to 2 (opposite).
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.semanticDistanceThreshold.
 */

/**
 * Returns at most `limit` positions, in order of ascending distance up to `maxDistance`. Vectors with a different
 * dimension never match.
 */
export function nearest(
  query: Float32Array,
  vectors: readonly Float32Array[],
  maxDistance: number,
  limit: number,
): number[] {
  // The best results so far, in order. Insertion is cheap, because there are only a few results.
  const found: { readonly at: number; readonly distance: number }[] = []
  let farthest = maxDistance + rounding
  for (const [at, vector] of vectors.entries()) {
    if (vector.length !== query.length) continue
    const distance = 1 - product(query, vector)
    if (distance > farthest || (found.length === limit && distance === farthest)) continue
    const place = found.findLastIndex((other) => other.distance <= distance) + 1
    found.splice(place, 0, { at, distance })
    if (found.length > limit) found.pop()
    if (found.length === limit) farthest = found.at(-1)?.distance ?? farthest
  }
  return found.map(({ at }) => at)
}

/**
 * Tolerance for rounding errors in a distance. Vectors have single precision, so identical vectors may appear to be
 * this far apart.
 */
const rounding = 1e-6

/** Computes four sums in parallel, because independent additions are faster. */
function product(a: Float32Array, b: Float32Array): number {
  const whole = a.length - (a.length % 4)
  let [s, t, u, v] = [0, 0, 0, 0]
  for (let i = 0; i < whole; i += 4) {
    s += (a[i] ?? 0) * (b[i] ?? 0)
    t += (a[i + 1] ?? 0) * (b[i + 1] ?? 0)
    u += (a[i + 2] ?? 0) * (b[i + 2] ?? 0)
    v += (a[i + 3] ?? 0) * (b[i + 3] ?? 0)
  }
  for (let i = whole; i < a.length; i++) s += (a[i] ?? 0) * (b[i] ?? 0)
  return s + t + u + v
}
