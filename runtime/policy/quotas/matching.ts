/** Which calls a quota counts, and what a call is said to cost. By backend and by the tool's name there, whatever clients call it. */
import { own } from '../../../schemas/index.ts'
import type { Quota } from '../../../schemas/index.ts'

interface Named {
  readonly backend: string
  readonly tool: string
}

/** Prices in micro-units, by `backend/tool` or `backend`. */
export type Costs = Readonly<Record<string, number>>

export function matchesQuota({ match = {} }: Pick<Quota, 'match'>, { backend, tool }: Named): boolean {
  return (match.backend ?? backend) === backend && (match.tool ?? tool) === tool
}

/** In micro-units: of the tool, else of any tool of the backend, else 0. */
export function priceOf(costs: Costs, backend: string, tool: string): number {
  const of = (key: string): number | undefined => own(costs, key)
  return of(`${backend}/${tool}`) ?? of(backend) ?? 0
}
