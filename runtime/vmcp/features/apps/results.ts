/** Rewrites the addresses of pages in the results of one backend, and remembers which pages a client has read. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, readMembers, workOn } from '../../../mcp/index.ts'
import { backendUri, isUiAddress } from '../../catalog/names/ui-addresses.ts'
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
    if (!target || target.run || !methods.has(method)) return next(operation)
    // A backend can offer pages that none of its lists contain.
    const concerns = pageOf(operation, target) !== undefined || listings.hasApps(target.entry.backend)
    return concerns ? rewritten(operation, target, next) : next(operation)
  }

  async function rewritten(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { method, client } = operation
    const { backend } = target.entry
    const outcome = await next({ ...operation, target: { ...target, needsWholeResult: true } })
    if (outcome.kind !== 'result') return outcome
    const page = pageOf(operation, target)
    if (page !== undefined) {
      checkLock?.(target.entry, page, outcome.result)
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

/** Returns the address that the backend uses for the page that an operation reads. */
function pageOf({ method, params }: Operation, { entry }: Target): string | undefined {
  const uri = method === 'resources/read' ? params.text('uri') : undefined
  return uri !== undefined && isUiAddress(uri) ? backendUri(entry, uri) : undefined
}
