/**
 * Makes one ranking out of two: what was found by meaning and what was found by words.
 *
 * The tool at rank r of a ranking with weight w scores w / r, and one that stands in both scores for both. So the first
 * n of the result hold tools of each ranking about in the proportion of the weights, agreement moves a tool up, and
 * where one ranking ends the other fills the rest.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.hybridSearchSemanticRatio.
 */

/** Positions, best first, at most `limit`. `ratio` is the weight of `semantic`, 0 to 1; a ranking of weight 0 is out. */
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
  // The sort is stable: of equal scores the one found by meaning comes first.
  return [...scores]
    .sort(([, a], [, b]) => b - a)
    .slice(0, limit)
    .map(([position]) => position)
}
