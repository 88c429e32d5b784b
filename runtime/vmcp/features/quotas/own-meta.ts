/**
 * Members of a result's `_meta` that only Gatehouse may write. They are removed from results of backends, so that
 * clients can trust them.
 * Source: docs/guides/quotas.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, JsonObject, readMembers, workOn } from '../../../mcp/index.ts'
import type { Outcome } from '../../model/outcome.ts'

const ownPrefix = 'gatehouse.dev/'

/** Rejects with BACKEND_PROTOCOL when a result that may contain such members cannot be read. */
export function withoutOwnMeta(outcome: Outcome): Outcome | Promise<Outcome> {
  return outcome.kind === 'result' && mayHold(outcome.result) ? without(outcome) : outcome
}

async function without(outcome: Extract<Outcome, { readonly kind: 'result' }>): Promise<Outcome> {
  const bytes = outcome.result
  try {
    await workOn(bytes, readMembers(bytes))
    const result = new JsonObject(bytes)
    const raw = result.raw('_meta')
    if (raw?.[0] !== 0x7b) return outcome
    await workOn(raw, readMembers(raw))
    const meta = new JsonObject(raw)
    const own = meta.names().filter((name) => name.toLowerCase().startsWith(ownPrefix))
    if (own.length === 0) return outcome
    const changed = meta.with(Object.fromEntries(own.map((name) => [name, undefined])))
    return { ...outcome, result: result.with({ _meta: changed }) }
  } catch (cause) {
    if (cause instanceof JsonError) throw new GatehouseError('BACKEND_PROTOCOL', { cause })
    throw cause
  }
}

/** Names may contain escapes. All escapes for ASCII characters start with `\u00`. */
function mayHold(result: Buffer): boolean {
  return result.includes('gatehouse.dev') || result.includes('\\u00')
}
