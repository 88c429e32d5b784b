/** Which quotas count a call, for operators. Counters are not read. */
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

/** One line for each, in their order. */
export function explainQuotas(
  quotas: readonly Quota[],
  costs: Costs,
  call: { readonly backend: string; readonly tool: string },
): readonly string[] {
  return quotas
    .filter((quota) => matchesQuota(quota, call))
    .map(({ name, per, limit, unit, window, action }) => {
      const price =
        unit === 'cost'
          ? `, of which this call is counted with ${priceOf(costs, call.backend, call.tool)} unless the backend reports another cost`
          : ''
      return `${name}: ${holders[per]} has ${limit} ${unit} a ${window}${price}; ${effects[action]}`
    })
}
