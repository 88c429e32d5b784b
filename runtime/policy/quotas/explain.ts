/** Which quotas count a call, for operators. The budget of a caller is not read: only how full the fullest of each quota is. */
import { own } from '../../../schemas/index.ts'
import type { Quota } from '../../../schemas/index.ts'
import { type Costs, matchesQuota, priceOf } from './matching.ts'

const holders: Readonly<Record<Quota['per'], string>> = {
  user: 'each user',
  group: 'each group of the caller',
  client: 'each client',
  server: 'all callers together',
}

const effects: Readonly<Record<Quota['action'], string>> = {
  block: 'calls over it are refused',
  warn: 'calls over it go on',
}

export interface ExplainedQuotas {
  readonly quotas: readonly Quota[]
  readonly costs: Costs
  /** What the fullest budget of a quota has used of it in this window, by its name; where nothing counts, none. */
  readonly shares: Readonly<Record<string, number>>
}

/** One line for each, in their order. */
export function explainQuotas(
  { quotas, costs, shares }: ExplainedQuotas,
  call: { readonly backend: string; readonly tool: string },
): readonly string[] {
  return quotas
    .filter((quota) => matchesQuota(quota, call))
    .map(({ name, per, limit, unit, window, action }) => {
      const price =
        unit === 'cost'
          ? `, of which this call is counted with ${priceOf(costs, call.backend, call.tool)} unless the backend reports another cost`
          : ''
      return `${name}: ${limit} ${unit} a ${window} for ${holders[per]}${price}; ${effects[action]}${fullest(shares, name)}`
    })
}

function fullest(shares: ExplainedQuotas['shares'], name: string): string {
  const share = own(shares, name)
  if (share === undefined) return ''
  return `; the fullest budget is used to ${Math.min(100, Math.floor(share * 100))} % in this window`
}
