/**
 * Executes a script's tool calls. Each call is a regular call that passes through the guards and has a separate
 * timeout.
 *
 * Requests for input from backends reach the client, and timeouts are paused until the client answers. Progress is
 * renumbered, because several calls share the client's token.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script), "Errors"
 * (toolCallTimeout).
 */
import { formatDuration, GatehouseError } from '../../../../schemas/index.ts'
import { type Ask, JsonError, JsonObject, protocolError, respondToInputRequests } from '../../../mcp/index.ts'
import { abortable, type Log, Deadline } from '../../../net/index.ts'
import type { AuditTrail, PolicyRecord } from '../../../observe/index.ts'
import { auditOutcome, type Outcome } from '../../model/outcome.ts'
import { deriveContext, innerOperation, type Operation, type Perform } from '../../model/operation.ts'
import type { Lease } from '../../../process/index.ts'
import { responseOf } from './tool-response.ts'
import type { ScriptCall, ToolResponse } from './messages.ts'
import { parkedBytes } from './settings.ts'

export interface ToolCallsOptions {
  readonly operation: Operation
  readonly inside: Perform
  /** Lease on the script's worker. While a request for input is open, other scripts can use the slot. */
  readonly lease: Pick<Lease, 'park' | 'resume'>
  /** Tools in the caller's list. */
  readonly listed: ReadonlySet<string>
  /** Deadline for the whole script. */
  readonly script: Deadline
  readonly timeoutMs: number
  readonly audit: AuditTrail
  readonly log: Log
}

/** A call that a script has made. */
interface MadeCall extends ScriptCall {
  /** The selected backend. Undefined before routing, and for calls without a backend. */
  backend: string | undefined
  policy: PolicyRecord | undefined
}

/** Maximum number of rounds of input requests in one call. */
const maxRounds = 16

export class ToolCalls {
  readonly #options: ToolCallsOptions
  #progress = 0
  /** Number of open requests for input. */
  #questions = 0

  constructor(options: ToolCallsOptions) {
    this.#options = options
  }

  /** Makes a call. Never rejects, because errors become responses to the script. */
  async call({ tool, args, held }: ScriptCall): Promise<ToolResponse> {
    const { script, timeoutMs, log } = this.#options
    const deadline = new Deadline(timeoutMs, script.signal)
    const startedAt = performance.now()
    const made: MadeCall = { tool, args, held, backend: undefined, policy: undefined }
    let outcome: Outcome | undefined
    let failure: unknown
    try {
      outcome = await abortable(this.#perform(made, deadline), deadline.signal)
      return responseOf(outcome)
    } catch (error) {
      failure = error
      if (deadline.signal.aborted && !script.signal.aborted)
        return { kind: 'error', message: `timed out after ${formatDuration(timeoutMs)}` }
      if (isAbsence(error) && !this.#options.listed.has(tool)) return { kind: 'unknown' }
      if (error instanceof GatehouseError) return { kind: 'error', message: error.message }
      log.debug('a call made by a script failed', { tool, err: error })
      return { kind: 'error', message: 'the call failed' }
    } finally {
      deadline.end()
      this.#record(made, outcome, failure, performance.now() - startedAt)
    }
  }

  async #perform(made: MadeCall, deadline: Deadline): Promise<Outcome> {
    const { operation, inside } = this.#options
    const plain = callParams(made, operation.context.progressToken)
    let params = new JsonObject(plain)
    let stateFor: string | undefined
    for (let round = 0; round < maxRounds; round++) {
      const called = { ...innerOperation(operation, 'tools/call', params), stateFor }
      const inner = this.#inner(called, made, deadline)
      const outcome = await inside(inner)
      if (outcome.kind !== 'input') return outcome
      const ask = (request: Ask) => inner.context.ask(request)
      const responses = await respondToInputRequests(outcome.result, ask, deadline.signal)
      params = new JsonObject(new JsonObject(plain).with(responses))
      stateFor = outcome.backend
    }
    throw protocolError('the backend requested input too many times')
  }

  #inner(operation: Operation, made: MadeCall, deadline: Deadline): Operation {
    const context = deriveContext(operation.context, {
      onRouted: (backend) => (made.backend = backend),
      onDecision: (record) => (made.policy = record),
      signal: deadline.signal,
      progress: (params) => this.#report(params),
      ask: (request, signal) =>
        this.#waiting(made, deadline, () => operation.context.ask(request, signal ?? deadline.signal)),
    })
    return { ...operation, isForProgram: true, context }
  }

  /**
   * While a request for input is open, timeouts pause, and other scripts may use the slot. Waiting for a slot
   * afterwards counts toward the timeout.
   */
  async #waiting<T>({ held }: MadeCall, deadline: Deadline, question: () => Promise<T>): Promise<T> {
    const { lease, script } = this.#options
    if (this.#questions === 0) lease.park(parkedBytes + held)
    this.#questions++
    const [goOn, goOnScript] = [deadline.pause(), script.pause()]
    try {
      return await question()
    } finally {
      goOnScript()
      try {
        if (--this.#questions === 0) await lease.resume(script.signal)
      } finally {
        goOn()
      }
    }
  }

  /** Progress updates from several calls have no common unit, so the updates are only counted. */
  #report(params: Buffer): void {
    try {
      this.#options.operation.context.progress(
        new JsonObject(params).with({ progress: String(++this.#progress), total: undefined }),
      )
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
    }
  }

  #record(made: MadeCall, outcome: Outcome | undefined, failure: unknown, durationMs: number): void {
    const { audit, operation } = this.#options
    if (!audit.enabled) return
    audit.call({
      caller: operation.client.caller,
      tool: made.tool,
      backend: made.backend,
      policy: made.policy,
      outcome: auditOutcome(outcome, failure),
      durationMs: Math.round(durationMs * 10) / 10,
      request: callParams(made, undefined),
      response: outcome?.kind === 'error' ? outcome.error : outcome?.result,
    })
  }
}

/** True if the tool does not exist for the caller. A script cannot distinguish a forbidden tool from an absent one. */
function isAbsence(error: unknown): boolean {
  return error instanceof GatehouseError && (error.code === 'FORBIDDEN' || error.code === 'INVALID_PARAMS')
}

/** Returns the params of an inner call. Of the client's `_meta`, only the progress token is copied. */
function callParams({ tool, args }: MadeCall, token: string | undefined): Buffer {
  const meta = token === undefined ? '' : `,"_meta":{"progressToken":${token}}`
  const [head, tail] = [`{"name":${JSON.stringify(tool)},"arguments":`, `${meta}}`]
  return Buffer.concat([Buffer.from(head), args, Buffer.from(tail)])
}
