/**
 * Combines the rankings by meaning and by keywords.
 *
 * A tool at rank r of a ranking with weight w scores w / r. A tool in both rankings receives the sum of its two scores
 * and moves up. The first n results contain tools from each ranking roughly in proportion to the weights. When one
 * ranking ends, all further results come from the other ranking.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.hybridSearchSemanticRatio.
 */

/**
 * Returns at most `limit` positions, best first. `ratio` is the weight of `semantic`, from 0 to 1. A ranking with
 * weight 0 is ignored.
 */
export function fuse(
  semantic: readonly number[],
  keyword: readonly number[],
  ratio: number,
  limit: number,
): number[] {
  const scores = new Map<number, number>()
  for (const [ranking, weight] of [
    [semantic, ratio],
    [keyword, 1 - ratio],
  ] as const) {
    if (weight === 0) continue
    for (const [i, position] of ranking.entries())
      scores.set(position, (scores.get(position) ?? 0) + weight / (i + 1))
  }
  // The sort is stable. If two scores are equal, the semantic result comes first.
  return [...scores]
    .sort(([, a], [, b]) => b - a)
    .slice(0, limit)
    .map(([position]) => position)
}
