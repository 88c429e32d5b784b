/** Explains to operators why an item is withheld from clients. */
import { pinRefusal } from '../../observe/index.ts'
import type { Refused } from '../model/catalog/entries.ts'

/** Returns the reason, separated into pinning and other rules for `gatehouse explain` and the console. */
export function withheldBy(refused: Refused): { readonly refused: string } | { readonly hidden: string } {
  if (typeof refused === 'string') return { refused }
  return { hidden: `guardrail ${refused.guardrail} refuses hidden characters in it` }
}

export function withheldWords(refused: Refused): string {
  const found = withheldBy(refused)
  return 'hidden' in found ? found.hidden : `pinning: ${pinRefusal(found.refused)}`
}
