/**
 * Implements code mode with the execute_tool_script tool, which runs a script that calls other tools.
 *
 * The list handler runs outside the guards and adds the tool to the caller's list. The tool itself runs behind the
 * guards. Each call that a script makes passes through the guards again. A script can therefore use only what its
 * caller can use.
 * Source: docs/reference/specification/virtual-server.md#codeMode, config.codeMode and "Endpoints"
 * (execute_tool_script).
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../../schemas/index.ts'
import { arrayEnd, arrayStart, comma, JsonObject, objectEnd, scanElements } from '../../../mcp/index.ts'
import { type Caller, type Log, Deadline } from '../../../net/index.ts'
import type { AuditTrail } from '../../../observe/index.ts'
import type { Operation, Perform, Feature } from '../../model/operation.ts'
import { type Outcome, toolErrorOutcome, type TextContent } from '../../model/outcome.ts'
import { toolsForModels } from '../../model/catalog/tool-ui.ts'
import { listTools } from '../../model/list-tools.ts'
import { WorkerPool, type WorkerProgram } from '../../../process/index.ts'
import { callerOf } from '../../model/session.ts'
import { bindTools, type ToolSet } from './binding.ts'
import { describeTool, executeToolScriptName } from './description.ts'
import { runScript, type ScriptEnd } from './run-script.ts'
import { scriptPool, type ScriptSettings } from './settings.ts'
import { ToolCalls } from './tool-calls.ts'

export const scriptWorker: WorkerProgram = {
  name: 'script-worker',
  source: new URL('./worker.ts', import.meta.url),
}

export interface CodeModeParts {
  readonly audit: AuditTrail
  readonly log: Log
  /**
   * Returns false if a policy forbids this caller to use the tool. The tool is then not listed. By default, the tool is
   * always listed.
   */
  readonly permits?: ((caller: Caller, tool: string, signal: AbortSignal) => Promise<boolean>) | undefined
  readonly pool?: WorkerPool | undefined
}

/** Maximum total size of the lists for cached tool sets. */
const maxCachedBytes = 16 * 1024 * 1024

interface ReadySet extends ToolSet {
  /** The tool in the form that appears in lists. */
  readonly shown: Buffer
  readonly bytes: number
}

export function makeCodeMode(settings: ScriptSettings, parts: CodeModeParts): Feature {
  const { audit, log, permits = async () => true } = parts
  const pool = parts.pool ?? new WorkerPool(scriptWorker, scriptPool())
  const sets = new LRUCache<string, ReadySet>({
    maxSize: maxCachedBytes,
    sizeCalculation: ({ bytes }) => bytes,
  })
  /** Cached first pages that include the tool. */
  const lists = new WeakMap<Buffer, Buffer>()
  const end = new AbortController()

  function setOf(listed: readonly JsonObject[]): ReadySet {
    const list = Buffer.concat(listed.map(({ bytes }) => bytes))
    const key = hash('sha256', list, 'base64url')
    const known = sets.get(key)
    if (known) return known
    const set = bindTools(toolsForModels(listed), executeToolScriptName)
    const shown = Buffer.from(describeTool(set.tools))
    const made = { ...set, shown, bytes: list.length + shown.length }
    sets.set(key, made)
    return made
  }

  async function list(operation: Operation, next: Perform): Promise<Outcome> {
    const outcome = await next(operation)
    if (outcome.kind !== 'result') return outcome
    const permitted = await permits(operation.client.caller, executeToolScriptName, operation.context.signal)
    const isFirst = (operation.params.text('cursor') ?? '') === ''
    const known = permitted && isFirst ? lists.get(outcome.result) : undefined
    if (known) return { kind: 'result', result: known }
    const page = new JsonObject(outcome.result)
    const own = [...scanElements(page.raw('tools') ?? Buffer.from('[]'))]
    const isLast = page.text('nextCursor') === undefined
    if (isLast && permitted) {
      const all = isFirst
        ? own.map((item) => new JsonObject(item))
        : await listTools(operation, (inner) => next(inner))
      own.push(setOf(all).shown)
    }
    const tools = own.flatMap((item, i) => (i === 0 ? [item] : [comma, item]))
    const result = page.with({ tools: Buffer.concat([arrayStart, ...tools, arrayEnd]) })
    if (permitted && isFirst) lists.set(outcome.result, result)
    return { kind: 'result', result }
  }

  async function execute(operation: Operation, inside: Perform): Promise<Outcome> {
    const given = argumentsOf(operation, settings)
    if ('failure' in given) return failure(given.failure, [])
    const { binding } = setOf(await listTools(operation, inside))
    const signal = AbortSignal.any([operation.context.signal, end.signal])
    const deadline = new Deadline(settings.scriptTimeoutMs, signal)
    try {
      const lease = await pool.take(callerOf(operation.client), deadline.signal)
      const calls = new ToolCalls({
        operation,
        inside,
        lease,
        listed: new Set(binding.tools.map(({ name }) => name)),
        script: deadline,
        timeoutMs: settings.toolCallTimeoutMs,
        audit,
        log,
      })
      const ended = await runScript({ ...given, binding }, lease, { settings, deadline, calls, log })
      signal.throwIfAborted()
      return render(ended)
    } catch (error) {
      if (!signal.aborted && deadline.signal.aborted) return failure('no worker became available in time', [])
      throw error
    } finally {
      // Calls in flight end when the script ends.
      deadline.abort(new Error('the script has ended'))
      deadline.end()
    }
  }

  return {
    surface: (operation, next) =>
      operation.method === 'tools/list' ? list(operation, next) : next(operation),
    tools: [{ name: executeToolScriptName, run: execute }],
    async close() {
      end.abort(
        new GatehouseError('SHUTTING_DOWN', {
          detail: 'script cancelled: the server is shutting down or its configuration changed',
        }),
      )
      await pool.close()
    },
  }
}

type Given = { readonly text: string; readonly data: Buffer | undefined } | { readonly failure: string }

function argumentsOf({ params }: Operation, { maxScriptLength }: ScriptSettings): Given {
  const args = params.object('arguments')
  const text = args?.text('script')
  const data = args?.raw('data')
  if (text === undefined || text.trim() === '') return { failure: "'script' argument must be a string" }
  if (text.length > maxScriptLength)
    return {
      failure: `'script' argument is longer than ${maxScriptLength} characters; pass values in 'data'`,
    }
  if (data === undefined || data.toString() === 'null') return { text, data: undefined }
  return data[0] === 0x7b ? { text, data } : { failure: "'data' argument must be an object" }
}

function render({ result, logs }: ScriptEnd): Outcome {
  if (result.kind === 'failed') return failure(result.message, logs)
  const lines = logItems(logs).map((item) => `,${JSON.stringify(item)}`)
  const structured = result.structured ? [Buffer.from(',"structuredContent":'), result.structured] : []
  const [head, tail] = ['{"content":[{"type":"text","text":', `}${lines.join('')}]`]
  return {
    kind: 'result',
    result: Buffer.concat([Buffer.from(head), result.text, Buffer.from(tail), ...structured, objectEnd]),
  }
}

function failure(message: string, logs: readonly string[]): Outcome {
  return toolErrorOutcome(`script execution failed: ${message}`, logItems(logs))
}

function logItems(logs: readonly string[]): TextContent[] {
  return logs.length === 0 ? [] : [{ type: 'text', text: `Script logs:\n${logs.join('\n')}` }]
}
