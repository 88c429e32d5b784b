/**
 * Calls the tool of a step: arguments, the call itself, again when it fails in a way that may pass.
 *
 * The call belongs to the client's own: same caller, same credentials, and what the backend says or asks on its way goes
 * to the client. It is neither authorized nor counted again: the workflow was. It is audited.
 * Source: spec document 3, steps (tool, arguments, onError).
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { jsonText } from '../../../expr/template/index.ts'
import { JsonObject, RPC } from '../../../mcp/index.ts'
import { abortable } from '../../backends/transport/deadline.ts'
import { innerOperation, type Operation, type Outcome } from '../../pipeline/operation.ts'
import { expandArguments } from './arguments.ts'
import type { ToolCall } from '../compile.ts'
import type { BoundTool, Context, TemplateData } from '../context.ts'
import { guarded } from '../expansion.ts'
import { StepError } from '../errors.ts'
import { reasonOf, retrying } from '../limits.ts'
import { readToolResult, type ToolResult } from './tool-result.ts'

/** Errors that come back the same however often one tries: refusals, and what is wrong with the call itself. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  'FORBIDDEN',
  'INVALID_PARAMS',
  'HEADER_MISMATCH',
  'CAPABILITY_REQUIRED',
  'BACKEND_AUTH_FAILED',
  'BACKEND_ROLE_DENIED',
  'UPSTREAM_TOKEN_MISSING',
  'UPSTREAM_NOT_CONNECTED',
  'SUBJECT_REFUSED',
  'ENTERPRISE_REQUIRED',
  'OAUTH_REFUSED',
])
const FINAL_RPC: ReadonlySet<unknown> = new Set([
  RPC.invalidParams,
  RPC.methodNotFound,
  RPC.invalidRequest,
  403,
])

/** Rejects with StepError, or with the reason of the signal. */
export async function callTool(
  context: Context,
  call: ToolCall,
  data: TemplateData,
  signal: AbortSignal,
  onRetry: () => void,
): Promise<ToolResult> {
  const bound = context.tools.get(call.tool)
  if (!bound) throw new StepError(`tool ${call.tool}: there is no such tool`)
  const { clock, random } = context.parts
  const args = expandArguments(call.arguments, data, bound.inputSchema())
  const text = guarded('arguments', () => jsonText(args))
  const params = Buffer.from(`{"name":${JSON.stringify(bound.entry.original)},"arguments":${text}}`)
  return retrying(call.retry, { clock, random, signal, onRetry }, async () => {
    try {
      return await once(context, bound, params, signal, call.timeoutMs)
    } catch (error) {
      if (signal.aborted) throw reasonOf(signal)
      throw asError(context, call.tool, error)
    }
  })
}

function asError({ parts }: Context, tool: string, error: unknown): StepError {
  if (error instanceof StepError) {
    return new StepError(`tool ${tool}: ${error.message}`, { retryable: error.retryable })
  }
  if (error instanceof GatehouseError) {
    const retryable = !FINAL_CODES.has(error.code)
    return new StepError(`tool ${tool}: ${error.message}`, { retryable, cause: error })
  }
  parts.log.error('a tool call of a workflow failed', { tool, err: error })
  return new StepError(`tool ${tool}: internal error`)
}

async function once(
  context: Context,
  { entry }: BoundTool,
  params: Buffer,
  signal: AbortSignal,
  timeoutMs: number | undefined,
): Promise<ToolResult> {
  const { parts, operation } = context
  const startedAt = parts.clock.now()
  let outcome: Outcome | undefined
  let failed = true
  try {
    outcome = await abortable(parts.call(inner(operation, params, signal), entry, timeoutMs), signal)
    const result = readOutcome(outcome)
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

/** Progress of a step would not fit that of the workflow, so no token is passed on. */
function inner(operation: Operation, params: Buffer, signal: AbortSignal): Operation {
  const made = innerOperation(operation, 'tools/call', new JsonObject(params))
  return { ...made, signal, progressToken: undefined }
}

function readOutcome(outcome: Outcome): ToolResult {
  switch (outcome.kind) {
    case 'result':
      return readToolResult(outcome.result)
    case 'error': {
      const error = new JsonObject(outcome.error)
      const message = error.text('message') || 'the backend refused the call'
      throw new StepError(message, { retryable: !FINAL_RPC.has(error.value('code')) })
    }
    default:
      throw new StepError('the backend asks in a way that cannot be passed on')
  }
}
