/**
 * The semantic side of a search: the vectors nearest to that of the query. All vectors have length one or are zero, so
 * a product of two is their cosine; distance is 1 - cosine, 0 identical to 2 opposite.
 * Source: spec document 3, config.optimizer.semanticDistanceThreshold.
 */

/** Positions in ascending distance, none farther than `maxDistance`, at most `limit`; other dimensions are no match. */
export function nearest(
  query: Float32Array,
  vectors: readonly Float32Array[],
  maxDistance: number,
  limit: number,
): number[] {
  const found: { readonly at: number; readonly distance: number }[] = []
  for (const [at, vector] of vectors.entries()) {
    if (vector.length !== query.length) continue
    const distance = 1 - product(query, vector)
    if (distance <= maxDistance + ROUNDING) found.push({ at, distance })
  }
  return found
    .sort((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map(({ at }) => at)
}

/** Vectors have single precision: what is identical may seem this far away. */
const ROUNDING = 1e-6

function product(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0)
  return sum
}
