/**
 * Calls a step's tool, with retries after temporary failures.
 *
 * The step's call belongs to the client's call. Both calls use the same caller and credentials, and the backend's
 * messages and requests are sent to the client. The step's call is neither authorized nor rate-limited again, because
 * these checks already covered the workflow itself, but it is audited.
 * Source: docs/reference/specification/virtual-server.md#steps, steps (tool, arguments, onError).
 */
import { abortable, reasonOf } from '../../../../net/index.ts'
import { GatehouseError } from '../../../../../schemas/index.ts'
import { JsonObject, objectEnd, rpcCode } from '../../../../mcp/index.ts'
import { deriveContext, innerOperation, type Operation } from '../../../model/operation.ts'
import type { Outcome } from '../../../model/outcome.ts'
import type { ToolCall } from '../compile.ts'
import { type WorkflowTool, type WorkflowContext, compute, keep } from '../context.ts'
import { StepError, WorkflowError } from '../errors.ts'
import { retrying } from '../limits.ts'
import { type ArgumentTypes, argumentTypes } from '../evaluation/arguments.ts'
import type { ExecutionState, SharedBytes } from '../evaluation/state.ts'

/** Codes of errors that a retry cannot fix, such as refusals and invalid calls. */
const finalCodes: ReadonlySet<string> = new Set([
  'FORBIDDEN',
  'QUOTA_EXCEEDED',
  'INVALID_PARAMS',
  'HEADER_MISMATCH',
  'CAPABILITY_REQUIRED',
  'BACKEND_AUTH_FAILED',
  'BACKEND_ROLE_DENIED',
  'UPSTREAM_TOKEN_MISSING',
  'UPSTREAM_NOT_CONNECTED',
  'USER_REQUIRED',
  'SUBJECT_REFUSED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
])
const finalRpc: ReadonlySet<unknown> = new Set([
  rpcCode.invalidParams,
  rpcCode.methodNotFound,
  rpcCode.invalidRequest,
  403,
])

/** A call with its arguments. */
export interface ReadyCall {
  /** Arguments as a JSON object. */
  readonly args: Uint8Array
  readonly state: ExecutionState
  readonly signal: AbortSignal
  readonly onRetry: () => void
}

/** Returns the types that a step's tool accepts for the templates in its arguments. Throws StepError. */
export function typesFor(context: WorkflowContext, step: string, { tool }: ToolCall): ArgumentTypes {
  const program = context.workflow.program.steps.get(step)
  if (!program || !('arguments' in program)) throw new TypeError('the step has no tool')
  return argumentTypes(boundTool(context, tool).inputSchema(), program.arguments)
}

function boundTool({ tools }: WorkflowContext, name: string): WorkflowTool {
  const bound = tools.get(name)
  if (!bound) throw new StepError(`tool ${name}: unknown tool`)
  return bound
}

/** Calls the tool and returns the raw result. Rejects with StepError, WorkflowError, or with the signal's reason. */
export async function callTool(
  context: WorkflowContext,
  call: ToolCall,
  ready: ReadyCall,
): Promise<SharedBytes> {
  const { signal, onRetry, args } = ready
  const bound = boundTool(context, call.tool)
  const { clock, random } = context.parts
  const head = Buffer.from(`{"name":${JSON.stringify(bound.entry.original)},"arguments":`)
  const params = Buffer.concat([head, args, objectEnd])
  return retrying(call.retry, { clock, random, signal, onRetry }, async () => {
    try {
      return await once(context, bound, { ...ready, params, timeoutMs: call.timeoutMs })
    } catch (error) {
      if (signal.aborted) throw reasonOf(signal)
      throw asError(context, call.tool, error)
    }
  })
}

function asError({ parts }: WorkflowContext, tool: string, error: unknown): Error {
  if (error instanceof WorkflowError) return error
  if (error instanceof StepError) {
    return new StepError(`tool ${tool}: ${error.message}`, { retryable: error.retryable })
  }
  if (error instanceof GatehouseError) {
    const retryable = !finalCodes.has(error.code)
    return new StepError(`tool ${tool}: ${error.message}`, { retryable, cause: error })
  }
  parts.log.error('a tool call in a workflow failed', { tool, err: error })
  return new StepError(`tool ${tool}: internal error`)
}

interface Attempt extends ReadyCall {
  readonly params: Buffer
  readonly timeoutMs: number | undefined
}

async function once(
  context: WorkflowContext,
  { entry }: WorkflowTool,
  attempt: Attempt,
): Promise<SharedBytes> {
  const { parts, operation } = context
  const { params, signal, timeoutMs } = attempt
  const startedAt = parts.clock.now()
  let outcome: Outcome | undefined
  let failed = true
  try {
    outcome = await abortable(parts.call(inner(operation, params, signal), entry, timeoutMs), signal)
    const result = await readOutcome(context, outcome, attempt)
    failed = false
    return result
  } finally {
    parts.audit.call({
      caller: operation.client.caller,
      tool: entry.key,
      backend: entry.backend,
      outcome: failed ? (outcome?.kind === 'result' ? 'application_error' : 'failure') : 'success',
      durationMs: parts.clock.now() - startedAt,
      request: params,
      response: outcome?.kind === 'error' ? outcome.error : outcome?.result,
    })
  }
}

/**
 * Returns the operation for a step. Drops the progress token, because the step's progress would conflict with the
 * workflow's progress.
 */
function inner(operation: Operation, params: Buffer, signal: AbortSignal): Operation {
  const made = innerOperation(operation, 'tools/call', new JsonObject(params))
  return { ...made, context: deriveContext(made.context, { signal, progressToken: undefined }) }
}

async function readOutcome(
  context: WorkflowContext,
  outcome: Outcome,
  { state, signal }: Attempt,
): Promise<SharedBytes> {
  switch (outcome.kind) {
    case 'result': {
      const bytes = keep(context, outcome.result)
      const failure = await compute(context, state, { kind: 'failure', bytes }, signal)
      if (failure !== undefined) throw new StepError(failure, { retryable: true })
      return bytes
    }
    case 'error': {
      const error = new JsonObject(outcome.error)
      const message = error.text('message') || 'the backend rejected the call'
      throw new StepError(message, { retryable: !finalRpc.has(error.value('code')) })
    }
    default:
      throw new StepError('the backend sent a request that cannot be forwarded')
  }
}
