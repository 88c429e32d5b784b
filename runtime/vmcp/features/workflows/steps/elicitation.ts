/**
 * An elicitation step, which requests input from the user.
 *
 * The request takes the same route as the workflow call. The step fails immediately if the client does not support
 * elicitation. The schema comes from the configuration. The message is a template.
 * Source: docs/reference/specification/virtual-server.md#steps, steps (message, schema, onDecline, onCancel); MCP,
 * client/elicitation.
 */
import { abortable, reasonOf } from '../../../../net/index.ts'
import { GatehouseError } from '../../../../../schemas/index.ts'
import { JsonError, JsonObject } from '../../../../mcp/index.ts'
import type { CompiledStep, Reaction, StepWork } from '../compile.ts'
import { type WorkflowContext, compute, keep } from '../context.ts'
import { StepError, StepTimeout } from '../errors.ts'
import type { ExecutionState, StepOutput } from '../evaluation/state.ts'

const maxResponseBytes = 1024 * 1024

export interface ElicitationResult {
  readonly output: StepOutput
  /** True if all steps that have not started are skipped. */
  readonly skipsRemaining: boolean
}

export interface StepQuestion {
  readonly step: CompiledStep
  readonly work: Elicitation
  readonly message: string
  readonly state: ExecutionState
  readonly signal: AbortSignal
}

type Elicitation = Extract<StepWork, { readonly type: 'elicitation' }>

/** Asks the user. Rejects with StepError or WorkflowError, or with the signal's reason when the workflow ends. */
export async function elicit(context: WorkflowContext, question: StepQuestion): Promise<ElicitationResult> {
  const { step, work, message, signal } = question
  const { operation } = context
  // An error about the missing capability would end a stateless client's whole request, although the workflow can
  // continue.
  if (step.continues && !operation.client.abilities.elicitation)
    throw new StepError('elicitation request failed: the client does not support elicitation')
  const params = Buffer.from(`{"message":${JSON.stringify(message)},"requestedSchema":${work.schema}}`)
  let raw: Buffer | undefined
  try {
    const reply = await abortable(
      operation.context.ask({ method: 'elicitation/create', params }, signal),
      signal,
    )
    raw = reply.result
  } catch (error) {
    const reason: unknown = signal.aborted ? reasonOf(signal) : error
    if (reason instanceof StepTimeout && work.onCancel && work.onCancel !== 'abort')
      return reaction('timeout', work.onCancel)
    if (reason instanceof StepTimeout) throw new StepError(`elicitation request ${reason.message}`)
    if (signal.aborted) throw reason
    const why = error instanceof GatehouseError ? error.message : 'the client cannot be prompted'
    throw new StepError(`elicitation request failed: ${why}`, { cause: error })
  }
  if (!raw) throw new StepError('elicitation request failed: the client returned an error')
  return readResponse(context, raw, question)
}

async function readResponse(
  context: WorkflowContext,
  raw: Buffer,
  question: StepQuestion,
): Promise<ElicitationResult> {
  if (raw.length > maxResponseBytes)
    throw new StepError('elicitation request failed: response content too large')
  const { onDecline, onCancel } = question.work
  const { action, content } = parsed(raw)
  switch (action) {
    case 'accept':
      return { output: await accepted(context, content, question), skipsRemaining: false }
    case 'decline':
      if (onDecline !== 'abort') return reaction(action, onDecline)
      throw new StepError('elicitation request was declined by the user')
    case 'cancel':
      if (onCancel && onCancel !== 'abort') return reaction(action, onCancel)
      throw new StepError('elicitation request was cancelled by the user')
    default:
      throw new StepError('invalid elicitation response action')
  }
}

function parsed(raw: Buffer): { action: string | undefined; content: Buffer } {
  try {
    const response = new JsonObject(raw)
    return { action: response.text('action'), content: response.raw('content') ?? Buffer.from('null') }
  } catch (error) {
    if (error instanceof JsonError)
      throw new StepError('elicitation request failed: the response is malformed')
    throw error
  }
}

async function accepted(
  context: WorkflowContext,
  raw: Buffer,
  { step, state, signal }: StepQuestion,
): Promise<StepOutput> {
  const task = { kind: 'response', step: step.id, content: keep(context, raw) } as const
  return { kind: 'response', action: 'accept', content: await compute(context, state, task, signal) }
}

function reaction(action: string, reaction: Reaction): ElicitationResult {
  const skipsRemaining = reaction === 'skip_remaining'
  const output = { kind: 'response', action } as const
  return { output: skipsRemaining ? { ...output, skipped: true } : output, skipsRemaining }
}
