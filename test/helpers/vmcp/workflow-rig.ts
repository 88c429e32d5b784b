/** Runs one workflow in process: the real engine, with tools that the test implements and a manual clock. */
import { makeAudit, makeTelemetry } from '../../../runtime/observe/index.ts'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import type { ToolEntry } from '../../../runtime/vmcp/model/catalog/entries.ts'
import type { AskReply } from '../../../runtime/mcp/index.ts'
import type { Operation } from '../../../runtime/vmcp/model/operation.ts'
import type { Outcome } from '../../../runtime/vmcp/model/outcome.ts'
import { Evaluator, makeWorkflows, workflowErrors } from '../../../runtime/vmcp/features/workflows/index.ts'
import { type CompositeTool, withDefaults } from '../../../schemas/index.ts'

/** Returns a workflow with defaults, like a resource. Throws when it has an error. */
export function workflow(spec: object): CompositeTool {
  const tool = draft(spec)
  const violations = workflowErrors([tool])
  if (violations.length > 0) throw new Error(violations.join('\n'))
  return tool
}

/** Like `workflow`, but allows errors. */
export function draft(spec: object): CompositeTool {
  const kind = 'VirtualMCPCompositeToolDefinition' as const
  const filled = withDefaults({ kind, spec: { name: 'w', description: 'd', ...spec } } as {
    kind: typeof kind
  })
  return filled.spec
}

export function toolEntry(key: string, more: Partial<ToolEntry> & { inputSchema?: object } = {}): ToolEntry {
  const { inputSchema = { type: 'object' }, ...rest } = more
  const [backend = '', original = key] = key.split('_')
  return {
    key,
    backend,
    original,
    base: original,
    json: Buffer.from(JSON.stringify({ name: key, inputSchema })),
    advertised: true,
    mirrored: [],
    annotations: {},
    ...rest,
  }
}

export interface Call {
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal
  /** The arguments as bytes. */
  readonly raw: string
}

export interface Rig {
  readonly calls: Call[]
  readonly timers: { ms: number; fire: () => void }[]
  readonly audited: Record<string, unknown>[]
  readonly progress: Record<string, unknown>[]
  readonly questions: Record<string, unknown>[]
  readonly listed: ToolEntry | undefined
  readonly problems: readonly string[]
  /** Moves the clock and runs the timers that are due, in order. */
  advance(ms: number): void
  run(args?: object | string, options?: { signal?: AbortSignal; progressToken?: string }): Promise<RigAnswer>
}

export interface RigAnswer {
  readonly text: string
  readonly isError: boolean
  readonly structured: unknown
}

export interface RigOptions {
  readonly tools?: readonly ToolEntry[]
  /** Returns the response to a call: structured content, or a whole outcome. */
  readonly response?: (call: Call) => unknown
  readonly ask?: (params: Record<string, unknown>, signal: AbortSignal | undefined) => Promise<AskReply>
  readonly elicits?: boolean
  /** Default: a new evaluator with the limits of a server. */
  readonly evaluator?: Evaluator
}

export function outcome(result: object): Outcome {
  return { kind: 'result', result: Buffer.from(JSON.stringify(result)) }
}

function isOutcome(value: unknown): value is Outcome {
  return typeof value === 'object' && value !== null && 'kind' in value
}

export async function rig(definition: CompositeTool, options: RigOptions = {}): Promise<Rig> {
  const { tools = [toolEntry('x_a'), toolEntry('x_b')], response = ({ args }) => args } = options
  const calls: Call[] = []
  const timers: { at: number; ms: number; work: () => void }[] = []
  const audited: Record<string, unknown>[] = []
  const progress: Record<string, unknown>[] = []
  const questions: Record<string, unknown>[] = []
  let now = 1_700_000_000_000
  const audit = makeAudit(
    {
      enabled: true,
      includeRequestData: true,
      includeResponseData: true,
      detectApplicationErrors: true,
      maxDataSize: 1024,
      policyInputs: 'none',
      maxDelegationDepth: 0,
    },
    { destination: { write: (line: string) => (audited.push(JSON.parse(line)), true) }, now: () => now },
  )
  const composer = makeWorkflows([definition], {
    async call(operation, entry, timeoutMs) {
      const raw = operation.params.raw('arguments')?.toString() ?? ''
      const call = {
        tool: entry.key,
        args: JSON.parse(raw),
        timeoutMs,
        signal: operation.context.signal,
        raw,
      }
      calls.push(call)
      const value = await response(call)
      return isOutcome(value) ? value : outcome({ content: [], structuredContent: value })
    },
    clock: {
      now: () => now,
      after(ms, work) {
        const timer = { at: now + ms, ms, work }
        timers.push(timer)
        return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1))
      },
    },
    random: () => 0.5,
    audit,
    telemetry: await makeTelemetry(undefined, { serverName: 's', version: '1', log: silentLog }),
    log: silentLog,
    evaluator: options.evaluator ?? new Evaluator(silentLog),
  })
  const made = composer?.(new Map(tools.map((tool) => [tool.key, tool])))
  const listed = made?.entries[0]
  return {
    calls,
    audited,
    progress,
    questions,
    listed,
    problems: (made?.problems ?? []).map(({ message }) => message),
    get timers() {
      return timers.map((timer) => ({ ms: timer.ms, fire: () => timer.work() }))
    },
    advance(ms) {
      now += ms
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at > now || !timers.includes(timer)) continue
        timers.splice(timers.indexOf(timer), 1)
        timer.work()
      }
    },
    async run(args = {}, { signal = new AbortController().signal, progressToken } = {}) {
      if (!listed?.run) throw new Error(`not listed: ${made?.problems.map(({ message }) => message).join()}`)
      const text = typeof args === 'string' ? args : JSON.stringify(args)
      const operation: Operation = {
        method: 'tools/call',
        params: new JsonObject(Buffer.from(`{"name":"w","arguments":${text}}`)),
        client: {
          era: 'session',
          protocolVersion: '2025-11-25',
          caller: { key: 'k', issuer: undefined, subject: 'ada', claims: {} } as never,
          abilities: {
            raw: Buffer.from('{}'),
            elicitation: options.elicits ?? true,
            sampling: false,
            roots: false,
            signature: '',
            extensions: new Set(),
          },
          info: undefined,
          headers: {},
          session: undefined,
        },
        context: {
          signal,
          progressToken,
          logLevel: undefined,
          progress: (params) => void progress.push(JSON.parse(params.toString())),
          log: () => {},
          ask: async ({ params }, asked) => {
            const question: Record<string, unknown> = JSON.parse(params?.toString() ?? '{}')
            questions.push(question)
            if (!options.ask) throw new Error('the client cannot be prompted')
            return options.ask(question, asked)
          },
        },
      }
      const outcome = await listed.run(operation)
      if (outcome.kind !== 'result') throw new Error(outcome.kind)
      const result = JSON.parse(outcome.result.toString())
      return {
        text: result.content[0].text,
        isError: result.isError === true,
        structured: result.structuredContent,
      }
    },
  }
}

/** The client's response to a request. */
export function reply(value: object): Promise<AskReply> {
  return Promise.resolve({ result: Buffer.from(JSON.stringify(value)) })
}

/** Resolves once all work that does not wait for the clock has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
