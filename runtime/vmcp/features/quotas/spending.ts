/**
 * Counts each call to a backend's tool, whether a client, a workflow step, a script or tool search makes the call.
 * Reserves budget before the call is sent, and settles the actual usage afterwards.
 *
 * Once 80% of a budget is used, the result of a client's own call reports the remaining budget in `_meta`.
 * Source: docs/guides/quotas.md.
 */
import { emptyObject, JsonObject, readMembers, workOn } from '../../../mcp/index.ts'
import type { Quotas, QuotaState, QuotaUse, Reservation } from '../../../policy/index.ts'
import type { Delivery } from '../../model/delivery.ts'
import type { Link, Operation, Perform } from '../../model/operation.ts'
import { isHeaderMismatch, type Outcome, sizeOf } from '../../model/outcome.ts'

/** Member of `_meta` that reports the remaining budgets to a client. */
const leftKey = 'gatehouse.dev/quota'

/** Highest valid cost of one call. */
const maxCost = 1_000_000_000_000
/** Maximum length of a text that is parsed as a cost. */
const maxCostLength = 32
/** Budgets are not added to a `_meta` object above this size. */
const maxMetaBytes = 64 * 1024

export interface QuotaParts {
  readonly quotas: Quotas
  /** Called when a backend reports a cost that is not a valid number of micro-units. */
  readonly costUnreadable: (backend: string) => void
}

/** Counts each call to a backend's tool. Rejects with QUOTA_EXCEEDED. */
export function spendQuota(parts: QuotaParts): Link {
  const spending = new Spending(parts)
  return (operation, next) => spending.spend(operation, next)
}

class Spending {
  readonly #parts: QuotaParts

  constructor(parts: QuotaParts) {
    this.#parts = parts
  }

  async spend(operation: Operation, next: Perform): Promise<Outcome> {
    const { target, method, client } = operation
    if (!target || target.run) return next(operation)
    const { backend, original: tool } = target.entry
    const { quotas } = this.#parts
    const reservation =
      method === 'tools/call' || target.isExtension
        ? await quotas.reserve({ caller: client.caller, backend, tool })
        : undefined
    if (!reservation) return next(operation)
    const delivery: Delivery = { sent: false }
    let outcome: Outcome
    try {
      outcome = await next({ ...operation, target: { ...target, delivery } })
    } catch (error) {
      reservation.settle({ sent: delivery.sent, bytes: 0 })
      throw error
    }
    const near = reservation.settle(this.#useOf(reservation, backend, delivery, outcome))
    return target.isStep !== true && near.length > 0 ? addRemaining(outcome, near) : outcome
  }

  #useOf(
    { readsCost }: Reservation,
    backend: string,
    { sent, reportedCost }: Delivery,
    outcome: Outcome,
  ): QuotaUse {
    // The backend did not execute this call. Gatehouse repeats the call.
    if (isHeaderMismatch(outcome)) return { sent: false, bytes: 0 }
    const bytes = sizeOf(outcome)
    if (!readsCost || !reportedCost) return { sent, bytes }
    const cost = reportedCost.length > maxCostLength ? Number.NaN : Number(reportedCost.toString())
    if (Number.isSafeInteger(cost) && cost >= 0 && cost <= maxCost) return { sent, bytes, cost }
    this.#parts.costUnreadable(backend)
    return { sent, bytes }
  }
}

async function addRemaining(outcome: Outcome, near: readonly QuotaState[]): Promise<Outcome> {
  if (outcome.kind !== 'result') return outcome
  const meta = await metaOf(outcome.result)
  if (!meta) return outcome
  const changed = meta.with({ [leftKey]: JSON.stringify(near) })
  return { ...outcome, result: new JsonObject(outcome.result).with({ _meta: changed }) }
}

/**
 * Returns the `_meta` of a result. Returns an empty object if `_meta` is absent, and undefined if `_meta` is unreadable
 * or too large.
 */
async function metaOf(result: Buffer): Promise<JsonObject | undefined> {
  try {
    await workOn(result, readMembers(result))
    const raw = new JsonObject(result).raw('_meta')
    if (!raw) return emptyObject
    return raw.length > maxMetaBytes ? undefined : new JsonObject(raw)
  } catch {
    return undefined
  }
}
