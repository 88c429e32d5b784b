/**
 * Matches calls to quotas and determines their price. Uses the backend and the tool's original name, regardless of the
 * name that clients see.
 */
import { own } from '../../../schemas/index.ts'
import type { Quota } from '../../../schemas/index.ts'

interface BackendTool {
  readonly backend: string
  readonly tool: string
}

/** Prices in micro-units, keyed by `backend/tool` or `backend`. */
export type Costs = Readonly<Record<string, number>>

export function matchesQuota({ match = {} }: Pick<Quota, 'match'>, { backend, tool }: BackendTool): boolean {
  return (match.backend ?? backend) === backend && (match.tool ?? tool) === tool
}

/** Returns the price in micro-units: the tool's price, or else the backend's, or else 0. */
export function priceOf(costs: Costs, backend: string, tool: string): number {
  const of = (key: string): number | undefined => own(costs, key)
  return of(`${backend}/${tool}`) ?? of(backend) ?? 0
}
