/** Rewrites the addresses of pages in the results of one backend, and remembers which pages a client has read. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonError, workOn } from '../../../mcp/index.ts'
import { backendUri, isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { withChangedResources } from '../../catalog/result-resources.ts'
import { mayContainUiInTurns } from '../../model/catalog/tool-ui.ts'
import type { Link, Operation, Perform, Target } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import { changeTaskResult } from '../../model/task.ts'
import type { PageCheck } from './page-locks.ts'
import type { AppListings } from './listing.ts'
import { resultChanges } from './rewrite.ts'

export interface AppResultLinks {
  /** For reads of resources. */
  readonly pageReads: Link
  /** For tool calls, prompts, and late results of tasks. */
  readonly appResults: Link
}

export function rewriteAppResults(listings: AppListings, checkLock?: PageCheck): AppResultLinks {
  return { pageReads, appResults }

  async function pageReads(operation: Operation, next: Perform): Promise<Outcome> {
    const { target, client } = operation
    if (!target) return next(operation)
    const { backend } = target.entry
    const page = pageOf(operation, target)
    // A backend can offer pages that none of its lists contain.
    if (page === undefined && !listings.appBackends.has(backend)) return next(operation)
    const outcome = await next(withWholeResult(operation, target))
    if (page !== undefined && outcome.kind === 'result') {
      await readable(() => checkLock?.(target.entry, page, outcome.result))
      listings.reads.record(client, backend)
    }
    return rewritten(operation.method, backend, outcome)
  }

  function appResults(operation: Operation, next: Perform): Promise<Outcome> {
    const { target } = operation
    const applies = target && !target.run && listings.appBackends.has(target.entry.backend)
    return applies ? rewriteResult(operation, target, next) : next(operation)
  }

  async function rewriteResult(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { method, task } = operation
    const { backend } = target.entry
    const outcome = await next(withWholeResult(operation, target))
    return task
      ? changeTaskResult(method, outcome, (late) => rewritten('tools/call', backend, late))
      : rewritten(method, backend, outcome)
  }

  async function rewritten(method: string, backend: string, outcome: Outcome): Promise<Outcome> {
    if (outcome.kind !== 'result') return outcome
    const { result } = outcome
    if (!(await workOn(result, mayContainUiInTurns(result)))) return outcome
    const work = withChangedResources(method, result, resultChanges(listings.rulesFor(backend)))
    return { ...outcome, result: await readable(() => workOn(result, work)) }
  }
}

/** Rejects with BACKEND_PROTOCOL if a result is invalid. */
async function readable<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    throw cause instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause }) : cause
  }
}

function withWholeResult(operation: Operation, target: Target): Operation {
  return { ...operation, target: { ...target, needsWholeResult: true } }
}

/** Returns the address that the backend uses for the page that an operation reads. */
function pageOf({ params }: Operation, { entry }: Target): string | undefined {
  const uri = params.text('uri')
  return uri !== undefined && isUiAddress(uri) ? backendUri(entry, uri) : undefined
}
