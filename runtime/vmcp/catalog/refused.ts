import { pinRefusal } from '../../observe/index.ts'
import type { Refused } from '../model/catalog/entries.ts'

/**
 * Returns the reason why an item is withheld from clients. `gatehouse explain` and the console need pinning reasons and
 * other rules as separate members.
 */
export function withheldReason(refused: Refused): { readonly refused: string } | { readonly hidden: string } {
  if (typeof refused === 'string') return { refused }
  return { hidden: `guardrail ${refused.guardrail} rejects hidden characters in the item` }
}

export function withheldText(refused: Refused): string {
  const found = withheldReason(refused)
  return 'hidden' in found ? found.hidden : `pinning: ${pinRefusal(found.refused)}`
}
