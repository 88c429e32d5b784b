/** Reasons why clients do not see an item. */
import { type Aggregation, reservedTools } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import { pinRefusal } from '../../../observe/index.ts'
import type { Refused, ToolEntry } from '../../model/catalog/entries.ts'

/** Returns a function that finds the rule that hides a tool from clients. */
export function hidingRuleOf(config: VmcpConfig): (entry: ToolEntry) => string | undefined {
  const reserved = reservedTools(config)
  const { aggregation } = config
  return ({ advertised, key, backend, base }) => {
    if (advertised) return undefined
    if (reserved.has(key)) return `${key} is reserved for one of the server's own tools`
    return describeRule(aggregation, backend, base)
  }
}

function describeRule(
  { excludeAllTools, tools, defaultToolVisibility }: Aggregation,
  backend: string,
  base: string,
): string {
  if (excludeAllTools) return 'aggregation.excludeAllTools is set'
  const settings = tools?.find(({ workload }) => workload === backend)
  if (!settings && defaultToolVisibility === 'deny')
    return `aggregation.defaultToolVisibility is deny, and aggregation.tools does not list ${backend}`
  if (settings?.excludeAll) return `aggregation.tools: excludeAll is set for ${backend}`
  return `aggregation.tools: the filter for ${backend} does not include ${base}`
}

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
