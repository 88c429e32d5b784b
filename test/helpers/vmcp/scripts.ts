/** Runs code mode on its own with one tool, with settings that no configuration can set. */
import type { Test } from 'tap'
import { makeCaller, silentLog } from '../../../runtime/net/index.ts'
import { makeAudit } from '../../../runtime/observe/index.ts'
import { makeCodeMode, scriptWorker } from '../../../runtime/vmcp/features/scripts/feature.ts'
import type { ScriptSettings } from '../../../runtime/vmcp/features/scripts/settings.ts'
import {
  deriveContext,
  type Link,
  type Operation,
  type OperationContext,
  ownOperation,
  type Perform,
} from '../../../runtime/vmcp/model/operation.ts'
import { resultOutcome } from '../../../runtime/vmcp/model/outcome.ts'
import { type ChainLinks, makeChain } from '../../../runtime/vmcp/call/chain.ts'
import { type PoolOptions, WorkerPool } from '../../../runtime/process/index.ts'

const scriptTool = 'execute_tool_script'
/** A small heap that fills up quickly. */
const smallPool: PoolOptions = {
  tasks: 'scripts',
  maxWorkers: 3,
  maxPerCaller: 3,
  maxWaiting: 5,
  maxParked: 4,
  maxParkedPerCaller: 4,
  maxParkedBytes: 256 * 1024 * 1024,
  maxIdle: 2,
  idleMs: 60_000,
  heapMb: 32,
}

/** The tool returns its arguments. */
export function startScripts(
  t: Test,
  settings: Partial<ScriptSettings>,
  tool: Perform = echo,
  pool: PoolOptions = smallPool,
) {
  const feature = makeCodeMode(
    {
      stepLimit: 100_000,
      parallelMaxConcurrency: 10,
      toolCallTimeoutMs: 30_000,
      scriptTimeoutMs: 60_000,
      maxBytes: 64 * 1024 * 1024,
      maxScriptLength: 100_000,
      ...settings,
    },
    { audit: makeAudit(undefined), log: silentLog, pool: new WorkerPool(scriptWorker, pool) },
  )
  t.teardown(() => feature.close())
  const pass: Link = (operation, next) => next(operation)
  const links: ChainLinks = {
    features: [feature],
    resolveTarget: () => pass,
    readableErrors: pass,
    route: pass,
    quota: pass,
    send: async (operation) =>
      operation.method === 'tools/list'
        ? resultOutcome({ tools: [{ name: 'tool', inputSchema: { type: 'object' } }] })
        : tool(operation),
  }
  const { perform } = makeChain(links)
  return {
    feature,
    async run(script: string, more: Partial<OperationContext> = {}): Promise<string> {
      const params = { name: scriptTool, arguments: { script } }
      const own = ownOperation(client(), 'tools/call', params, new AbortController().signal)
      const outcome = await perform({ ...own, context: deriveContext(own.context, more) })
      return outcome.kind === 'error' ? outcome.error.toString() : outcome.result.toString()
    },
  }
}

async function echo({ params }: Operation) {
  return resultOutcome({ content: [{ type: 'text', text: JSON.stringify(params.value('arguments')) }] })
}

function client(): Operation['client'] {
  return {
    era: 'session',
    protocolVersion: '2025-11-25',
    caller: makeCaller({ issuer: 'test', subject: 'somebody', claims: {} }),
    abilities: {
      raw: Buffer.from('{}'),
      elicitation: false,
      sampling: false,
      roots: false,
      signature: '',
      extensions: new Set(),
    },
    info: undefined,
    headers: {},
    session: undefined,
  }
}
