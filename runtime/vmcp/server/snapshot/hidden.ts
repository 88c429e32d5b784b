import { type Aggregation, reservedTools } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import type { ToolEntry } from '../../model/catalog/entries.ts'

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
