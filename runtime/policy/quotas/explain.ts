/**
 * Lists the quotas that a call counts toward, for operators. Reads only the fullest budget of each quota, not the
 * caller's budget.
 */
import { own } from '../../../schemas/index.ts'
import type { Quota } from '../../../schemas/index.ts'
import { type Costs, matchesQuota, priceOf } from './matching.ts'

const holders: Readonly<Record<Quota['per'], string>> = {
  user: 'each user',
  group: 'each group of the caller',
  client: 'each client',
  server: 'all callers in total',
}

const effects: Readonly<Record<Quota['action'], string>> = {
  block: 'further calls are rejected',
  warn: 'further calls are allowed',
}

export interface ExplainedQuotas {
  readonly quotas: readonly Quota[]
  readonly costs: Costs
  /** Usage of each quota's fullest budget in this window, keyed by quota name; absent when nothing has been counted. */
  readonly shares: Readonly<Record<string, number>>
}

/** Returns one line per quota, in order. */
export function explainQuotas(
  { quotas, costs, shares }: ExplainedQuotas,
  call: { readonly backend: string; readonly tool: string },
): readonly string[] {
  return quotas
    .filter((quota) => matchesQuota(quota, call))
    .map(({ name, per, limit, unit, window, action }) => {
      const price =
        unit === 'cost'
          ? `, of which this call costs ${priceOf(costs, call.backend, call.tool)} unless the backend reports a different cost`
          : ''
      return `${name}: ${limit} ${unit} per ${window} for ${holders[per]}${price}; ${effects[action]}${fullestText(shares, name)}`
    })
}

function fullestText(shares: ExplainedQuotas['shares'], name: string): string {
  const share = own(shares, name)
  if (share === undefined) return ''
  return `; the fullest budget is ${Math.min(100, Math.floor(share * 100))}% used in this window`
}
