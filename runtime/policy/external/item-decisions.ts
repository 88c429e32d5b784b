/**
 * Decides about the items of one list, several at a time, within the time that a whole list may take.
 *
 * What fails or comes too late is left undecided; what that means for the list is for gate.ts to say.
 */
import type { ListedItem } from '../list-filter.ts'
import { DecisionFailure } from '../remote/json-post.ts'

/** Questions about one list that are open at once. */
const questionsAtOnce = 16

interface ItemDecisions {
  readonly decide: (item: ListedItem, signal: AbortSignal) => Promise<boolean>
  readonly budgetMs: number
  /** Told when items are left undecided for lack of time. */
  readonly late: (error: Error) => void
  readonly signal: AbortSignal | undefined
}

/** Item -> whether it may be seen; without those that could not be decided about. Rejects with the signal's reason. */
export async function decideItems(
  items: readonly ListedItem[],
  { decide, budgetMs, late, signal: given }: ItemDecisions,
): Promise<ReadonlyMap<ListedItem, boolean>> {
  const budget = AbortSignal.timeout(budgetMs)
  const signal = given ? AbortSignal.any([given, budget]) : budget
  const verdicts = new Map<ListedItem, boolean>()
  const waiting = items.values()
  const askInTurn = async (): Promise<void> => {
    for (const item of waiting) {
      if (signal.aborted) return
      try {
        verdicts.set(item, await decide(item, signal))
      } catch (error) {
        given?.throwIfAborted()
        if (!(error instanceof DecisionFailure) && !budget.aborted) throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(questionsAtOnce, items.length) }, askInTurn))
  given?.throwIfAborted()
  const open = items.length - verdicts.size
  if (budget.aborted && open > 0) late(new Error(`${open} items of a list were not decided about in time`))
  return verdicts
}
