/**
 * Members of a result's `_meta` that only Gatehouse may write. `send` removes these members from every backend result,
 * so clients can trust them.
 * Source: docs/guides/quotas.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, JsonObject, readMembers, workOn } from '../../../mcp/index.ts'
import type { Delivery } from '../../model/delivery.ts'
import type { Outcome } from '../../model/outcome.ts'

const ownPrefix = 'gatehouse.dev/'
/** Member in which a backend reports a call's cost, in micro-units. */
const costKey = 'gatehouse.dev/cost'

/**
 * Removes the reserved `_meta` members, and stores the reported cost in `delivery`. Rejects with BACKEND_PROTOCOL if a
 * result that may contain the reserved members cannot be read.
 */
export async function withoutOwnMeta(outcome: Outcome, delivery?: Delivery): Promise<Outcome> {
  if (outcome.kind !== 'result' || !mayContainOwnMeta(outcome.result)) return outcome
  const bytes = outcome.result
  try {
    await workOn(bytes, readMembers(bytes))
    const result = new JsonObject(bytes)
    const raw = result.raw('_meta')
    if (raw?.[0] !== 0x7b) return outcome
    await workOn(raw, readMembers(raw))
    const meta = new JsonObject(raw)
    if (delivery) delivery.reportedCost = meta.raw(costKey)
    const own = meta.names().filter((name) => name.toLowerCase().startsWith(ownPrefix))
    if (own.length === 0) return outcome
    const changed = meta.with(Object.fromEntries(own.map((name) => [name, undefined])))
    return { ...outcome, result: result.with({ _meta: changed }) }
  } catch (cause) {
    if (cause instanceof JsonError) throw new GatehouseError('BACKEND_PROTOCOL', { cause })
    throw cause
  }
}

/**
 * True if a result may contain the reserved `_meta` members. Names may contain escapes. All escapes for ASCII
 * characters start with `\u00`.
 */
function mayContainOwnMeta(result: Buffer): boolean {
  return result.includes('gatehouse.dev') || result.includes('\\u00')
}
