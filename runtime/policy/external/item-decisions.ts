/**
 * Decides on the items of one list, several at a time, within the list's time limit.
 *
 * Items that fail or take too long stay undecided, and gate.ts handles them.
 */
import type { ListedItem } from '../list-filter.ts'
import { DecisionFailure } from '../remote/json-post.ts'

/** Number of concurrent requests about one list. */
const requestsAtOnce = 16

interface ItemDecisions {
  /** Number of items in the next request, at least one. */
  readonly together: () => number
  /** Returns one decision per item; undefined for a missing decision. */
  readonly decide: (
    items: readonly ListedItem[],
    signal: AbortSignal,
  ) => Promise<readonly (boolean | undefined)[]>
  readonly budgetMs: number
  /** Called when items stay undecided because time ran out. */
  readonly late: (error: Error) => void
  readonly signal: AbortSignal | undefined
}

/** Maps items to their visibility. Omits items without a decision. Rejects with the signal's reason. */
export async function decideItems(
  items: readonly ListedItem[],
  { together, decide, budgetMs, late, signal: given }: ItemDecisions,
): Promise<ReadonlyMap<ListedItem, boolean>> {
  const budget = AbortSignal.timeout(budgetMs)
  const signal = given ? AbortSignal.any([given, budget]) : budget
  const verdicts = new Map<ListedItem, boolean>()
  let begun = 0
  const askInTurn = async (): Promise<void> => {
    while (begun < items.length) {
      if (signal.aborted) return
      const group = items.slice(begun, begun + together())
      begun += group.length
      try {
        const answers = await decide(group, signal)
        for (const [at, item] of group.entries()) {
          const answer = answers[at]
          if (answer !== undefined) verdicts.set(item, answer)
        }
      } catch (error) {
        given?.throwIfAborted()
        if (!(error instanceof DecisionFailure) && !budget.aborted) throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(requestsAtOnce, items.length) }, askInTurn))
  given?.throwIfAborted()
  const open = items.length - verdicts.size
  if (budget.aborted && open > 0) late(new Error(`${open} list items got no decision within the time limit`))
  return verdicts
}
