/**
 * Implements tool search. Clients see find_tool and call_tool instead of all tools.
 *
 * The list handler runs outside the guards. The handler answers tools/list and converts a call to call_tool to a call
 * to the tool named in the arguments. Policies, rate limits and hidden-tool rules therefore apply to that tool. All
 * other names are rejected, so a client cannot find out which names exist. The find_tool tool itself runs behind the
 * guards and searches the caller's tools.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer and "Endpoints" (find_tool,
 * call_tool).
 */
import { setImmediate } from 'node:timers/promises'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Caller, Log } from '../../../net/index.ts'
import { comma, JsonObject, objectEnd, scanElements } from '../../../mcp/index.ts'
import type { Instruments, Observer } from '../../../observe/index.ts'
import { joinedItems } from '../../catalog/pages.ts'
import type { Clock } from '../../model/time/clock.ts'
import { mayContainUi, readToolUi } from '../../model/catalog/tool-ui.ts'
import { rendersApps } from '../../model/client.ts'
import {
  deriveContext,
  innerOperation,
  type Operation,
  type Perform,
  type Feature,
} from '../../model/operation.ts'
import { type Outcome, toolErrorOutcome } from '../../model/outcome.ts'
import { Measure, notFound } from './measure.ts'
import {
  ArgumentError,
  callToolName,
  type CallArguments,
  findToolName,
  callOnly,
  readCall,
  readFind,
  toolList,
} from './own-tools.ts'
import { type Found, ToolSearch } from './search.ts'
import type { SearchSettings } from './settings.ts'
import { VisibleToolsReader } from './visible-tools.ts'

export interface OptimizerParts {
  readonly observer: Pick<Observer, 'attributeTo'>
  /** Returns false if a policy forbids this caller to use one of the gateway's own tools. */
  readonly permits: (caller: Caller, tool: string, signal: AbortSignal) => Promise<boolean>
  readonly telemetry: Instruments
  readonly clock: Clock
  readonly log: Log
}

export function makeOptimizer(
  settings: SearchSettings,
  { telemetry, clock, log, ...parts }: OptimizerParts,
): Feature {
  const search = new ToolSearch({ settings, hidden: new Set([findToolName]), clock, log })
  const visible = new VisibleToolsReader()
  const measure = new Measure(telemetry)
  const end = new AbortController()

  /** Prepares the index. A client that lists tools will probably search for tools soon. */
  async function prepare(operation: Operation, inside: Perform): Promise<void> {
    try {
      await setImmediate()
      const inner = innerOperation(operation, 'tools/list', operation.params)
      const own = { ...inner, context: deriveContext(inner.context, { signal: end.signal }) }
      await search.prepare(await visible.read(own, inside))
    } catch (error) {
      // The search reports the error.
      log.debug('tools could not be prepared for searching', { err: error })
    }
  }

  async function find(operation: Operation, inside: Perform): Promise<Outcome> {
    return responded(findToolName, () =>
      measure.search(async (done) => {
        const query = readFind(operation.params.raw('arguments'))
        const found = await search.find(
          await visible.read(operation, inside),
          query,
          operation.context.signal,
        )
        const { outcome, figures } = render(found)
        done(query, { ...figures, results: found.tools.length, degraded: found.degraded })
        return outcome
      }),
    )
  }

  function call(operation: Operation, next: (instead: Operation) => Promise<Outcome>): Promise<Outcome> {
    let named: CallArguments
    try {
      named = readCall(operation.params.raw('arguments'))
    } catch (error) {
      return responded(callToolName, () => Promise.reject(error))
    }
    const { name, parameters } = named
    const absent = isAbsence(name)
    parts.observer.attributeTo(name, parameters)
    // Other members of the request, such as responses from a stateless client, belong to the call to the tool.
    const params = new JsonObject(
      operation.params.with({ name: JSON.stringify(name), arguments: parameters }),
    )
    return measure
      .call(name, { exists: (known) => search.knows(known), absent }, () =>
        // With the id of the request, the tool may respond with a task.
        next({
          ...innerOperation(operation, 'tools/call', params),
          id: operation.id,
          stateFor: operation.stateFor,
        }),
      )
      .catch((error: unknown) => {
        if (!absent(error)) throw error
        return toolErrorOutcome(`tool not found: ${name}`)
      })
  }

  /** Adds the tools with pages and the tools for apps. Clients render or call these tools only if they are listed. */
  async function withApps(own: Buffer, operation: Operation, inside: Perform): Promise<Buffer> {
    const { pages } = await visible.read(operation, inside)
    const apps = appTools(pages)
    if (apps.length === 0) return own
    const list = new JsonObject(own)
    const items = [...scanElements(list.raw('tools') ?? emptyArray), ...apps]
    return list.with({ tools: joinedItems(items, { before: '[', between: ',', after: ']' }) })
  }

  return {
    surface: async (operation, next) => {
      const { method, params } = operation
      if (method === 'tools/list') {
        if ((params.text('cursor') ?? '') !== '')
          throw new GatehouseError('INVALID_PARAMS', { detail: 'invalid cursor' })
        void prepare(operation, next)
        const { caller } = operation.client
        const finds = await parts.permits(caller, findToolName, operation.context.signal)
        const own = finds ? toolList : callOnly
        return {
          kind: 'result',
          result: rendersApps(operation.client) ? await withApps(own, operation, next) : own,
        }
      }
      if (method !== 'tools/call') return next(operation)
      const name = params.text('name')
      if (name === undefined)
        throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: name must be a string' })
      if (name === findToolName) return next(operation)
      if (name === callToolName) return call(operation, next)
      // An app calls the tools of its own server by name, and does not search.
      if (operation.isAppCall) return next(operation)
      throw notFound(name)
    },
    tools: [{ name: findToolName, run: find }],
    problems: () =>
      search.degraded
        ? ['tool search: the embedding service is failing; tools are searched by keyword only']
        : [],
    close: async () => {
      end.abort(new Error('tool search is closed'))
      await search.close()
    },
  }
}

const emptyArray = Buffer.from('[]')

/** Returns the definitions of tools with pages, and of tools that only apps use. */
function appTools(pages: readonly Buffer[]): readonly Buffer[] {
  return pages.flatMap((page) => {
    if (!mayContainUi(page)) return []
    const tools = scanElements(new JsonObject(page).raw('tools') ?? emptyArray)
    return tools.filter((json) => {
      const ui = mayContainUi(json) ? readToolUi(new JsonObject(json)) : undefined
      return ui && (ui.page !== undefined || !ui.isForModel)
    })
  })
}

/** Converts errors that a model can correct into tool results. */
async function responded(tool: string, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ArgumentError) return toolErrorOutcome(`${tool} failed: ${error.message}`)
    throw error
  }
}

/** True if the core returned this error for an unknown tool. */
function isAbsence(name: string): (failure: unknown) => boolean {
  const { message } = notFound(name)
  return (failure) =>
    failure instanceof GatehouseError && failure.code === 'INVALID_PARAMS' && failure.message === message
}

/** Returns the tools as listed, and the number of tokens saved. */
function render({ tools, tokens: baseline }: Found) {
  const returned = tools.reduce((sum, { tokens }) => sum + tokens, 0)
  const savings = baseline === 0 ? 0 : ((baseline - returned) / baseline) * 100
  const items = tools.flatMap(({ json }, i) => (i === 0 ? [json] : [comma, json]))
  const figures = JSON.stringify({
    baseline_tokens: baseline,
    returned_tokens: returned,
    savings_percent: Math.round(savings * 100) / 100,
  })
  const content = Buffer.concat([
    Buffer.from('{"tools":['),
    ...items,
    Buffer.from(`],"token_metrics":${figures}}`),
  ])
  const text = JSON.stringify([{ type: 'text', text: content.toString() }])
  const result = Buffer.concat([Buffer.from(`{"content":${text},"structuredContent":`), content, objectEnd])
  return { outcome: { kind: 'result', result } as const, figures: { baseline, returned, savings } }
}
