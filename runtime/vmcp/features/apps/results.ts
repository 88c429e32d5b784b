/** Rewrites the addresses of pages in the results of one backend, and remembers which pages a client has read. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, readMembers, workOn } from '../../../mcp/index.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { mayContainUi } from '../../model/catalog/tool-ui.ts'
import type { Link, Operation, Perform, Target } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { PageCheck } from './page-locks.ts'
import type { AppListings } from './listing.ts'
import { withResultAddresses } from './rewrite.ts'

const methods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export function rewriteAppResults(listings: AppListings, checkLock?: PageCheck): Link {
  return function rewriteAppResults(operation, next) {
    const { target, method } = operation
    const concerns = target && !target.run && listings.hasApps(target.entry.backend) && methods.has(method)
    return concerns ? rewritten(operation, target, next) : next(operation)
  }

  async function rewritten(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { method, client } = operation
    const { backend, original } = target.entry
    const outcome = await next({ ...operation, target: { ...target, needsWholeResult: true } })
    if (outcome.kind !== 'result') return outcome
    if (method === 'resources/read' && isUiAddress(original)) {
      checkLock?.(target.entry, outcome.result)
      listings.reads.record(client, backend)
    }
    if (!mayContainUi(outcome.result)) return outcome
    try {
      await workOn(outcome.result, readMembers(outcome.result))
      return { ...outcome, result: withResultAddresses(method, outcome.result, listings.rulesFor(backend)) }
    } catch (cause) {
      throw cause instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause }) : cause
    }
  }
}
