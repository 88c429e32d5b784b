/**
 * The semantic side of a search: the vectors nearest to that of the query. All vectors have length one or are zero, so
 * a product of two is their cosine; distance is 1 - cosine, 0 identical to 2 opposite.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.semanticDistanceThreshold.
 */

/** Positions in ascending distance, none farther than `maxDistance`, at most `limit`; other dimensions are no match. */
export function nearest(
  query: Float32Array,
  vectors: readonly Float32Array[],
  maxDistance: number,
  limit: number,
): number[] {
  // The best so far, in order; there are few, so that finding the place of another one is cheap.
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

/** Vectors have single precision: what is identical may seem this far away. */
const rounding = 1e-6

/** Four sums at a time, because additions that need not wait for one another are faster. */
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
