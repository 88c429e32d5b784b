/**
 * Asks the user: an elicitation step.
 *
 * The question goes the way of the call that runs the workflow; a client that cannot be asked makes the step fail at
 * once. The schema is the configured one, the message is a template.
 * Source: spec document 3, steps (message, schema, onDecline, onCancel); MCP, client/elicitation.
 */
import type { ErrorObject } from 'ajv'
import { GatehouseError } from '../../../../schemas/index.ts'
import { isObject, parseJson, type TemplateValue, type ValueObject } from '../../../expr/template/index.ts'
import { JsonError, JsonObject } from '../../../mcp/index.ts'
import { abortable } from '../../backends/transport/deadline.ts'
import type { Reaction, StepWork } from '../compile.ts'
import type { Context, TemplateData } from '../context.ts'
import { expandText } from '../expansion.ts'
import { StepError, StepTimeout } from '../errors.ts'
import { reasonOf } from '../limits.ts'

const MAX_RESPONSE_BYTES = 1024 * 1024
const MAX_ANSWER_DEPTH = 10

export interface ElicitationResult {
  readonly output: ValueObject
  /** True: no step that has not started yet does. */
  readonly skipsRemaining: boolean
}

type Elicitation = Extract<StepWork, { readonly type: 'elicitation' }>

/** Rejects with StepError, or with the reason of the signal when the workflow ends. */
export async function elicit(
  { operation }: Context,
  step: Elicitation,
  { continues }: { readonly continues: boolean },
  data: TemplateData,
  signal: AbortSignal,
): Promise<ElicitationResult> {
  const message = expandText(step.message, data, 'message')
  // A stateless client is told what it lacks by the end of its whole request: not where the workflow can go on.
  if (continues && !operation.client.abilities.elicitation)
    throw new StepError('elicitation request failed: the client does not support elicitation')
  const params = Buffer.from(`{"message":${JSON.stringify(message)},"requestedSchema":${step.schema}}`)
  let raw: Buffer | undefined
  try {
    const reply = await abortable(operation.ask({ method: 'elicitation/create', params }, signal), signal)
    raw = reply.result
  } catch (error) {
    const reason: unknown = signal.aborted ? reasonOf(signal) : error
    if (reason instanceof StepTimeout && step.onCancel && step.onCancel !== 'abort')
      return reaction('timeout', step.onCancel)
    if (reason instanceof StepTimeout) throw new StepError(`elicitation request ${reason.message}`)
    if (signal.aborted) throw reason
    const why = error instanceof GatehouseError ? error.message : 'the client could not be asked'
    throw new StepError(`elicitation request failed: ${why}`, { cause: error })
  }
  if (!raw) throw new StepError('elicitation request failed: the client answered with an error')
  return readResponse(raw, step)
}

function readResponse(raw: Buffer, step: Elicitation): ElicitationResult {
  if (raw.length > MAX_RESPONSE_BYTES)
    throw new StepError('elicitation request failed: response content too large')
  const { action, content } = parsed(raw)
  switch (action) {
    case 'accept':
      return { output: { action, content: checked(content, step) }, skipsRemaining: false }
    case 'decline':
      if (step.onDecline !== 'abort') return reaction(action, step.onDecline)
      throw new StepError('elicitation request was declined by user')
    case 'cancel':
      if (step.onCancel && step.onCancel !== 'abort') return reaction(action, step.onCancel)
      throw new StepError('elicitation request was cancelled by user')
    default:
      throw new StepError('invalid elicitation response action')
  }
}

function parsed(raw: Buffer): { action: string | undefined; content: TemplateValue } {
  try {
    const response = new JsonObject(raw)
    return {
      action: response.text('action'),
      content: parseJson(response.raw('content')?.toString() ?? 'null'),
    }
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError)
      throw new StepError('elicitation request failed: the response cannot be read')
    throw error
  }
}

function reaction(action: string, reaction: Reaction): ElicitationResult {
  const skipsRemaining = reaction === 'skip_remaining'
  return { output: skipsRemaining ? { action, skipped: true } : { action }, skipsRemaining }
}

/** What was filled in; anything else than an object counts as nothing. */
function checked(content: TemplateValue, { accepts }: Elicitation): ValueObject {
  const given = isObject(content) ? content : {}
  if (isDeeper(given, MAX_ANSWER_DEPTH))
    throw new StepError(
      `elicitation request failed: the response is nested more than ${MAX_ANSWER_DEPTH} deep`,
    )
  if (accepts(given)) return given
  throw new StepError(`the response does not match the schema: ${describe(accepts.errors)}`)
}

function isDeeper(value: TemplateValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner: TemplateValue) => isDeeper(inner, depth - 1))
}

/** Paths and rules, never values. */
export function describe(errors: readonly ErrorObject[] | null | undefined): string {
  const lines = (errors ?? []).slice(0, 10).map(({ instancePath, message, params }) => {
    const extra: unknown = params['additionalProperty']
    const which = typeof extra === 'string' ? ` (${JSON.stringify(extra.slice(0, 80))})` : ''
    return `${instancePath === '' ? '/' : instancePath} ${message ?? 'is not valid'}${which}`
  })
  return lines.join('; ')
}
