/**
 * A forEach step: one tool call for each item of a list, in list order, some at a time.
 *
 * The first failure ends the step and cancels what runs, unless failures are tolerated. Output:
 * `{iterations: [{index, item, status, output, error?}], count, completed, failed}`.
 * Source: spec document 3, steps (collection, itemVar, maxIterations, maxParallel, step).
 */
import { formatDuration } from '../../../../schemas/index.ts'
import { isList, parseJson, type TemplateValue, type ValueObject } from '../../../expr/template/index.ts'
import type { StepWork } from '../compile.ts'
import { isTrue } from './condition.ts'
import type { Context, TemplateData } from '../context.ts'
import { expandText, singleValue } from '../expansion.ts'
import { StepError, StepTimeout } from '../errors.ts'
import { Limit, reasonOf } from '../limits.ts'
import { callTool } from './tool-step.ts'

type ForEach = Extract<StepWork, { readonly type: 'forEach' }>

/** Rejects with StepError, or with the reason of the signal. */
export async function runForEach(
  context: Context,
  step: ForEach,
  data: TemplateData,
  signal: AbortSignal,
  onRetry: () => void,
): Promise<ValueObject> {
  const items = collectionOf(step, data)
  if (items.length > step.maxIterations) {
    throw new StepError(`collection size ${items.length} exceeds maxIterations ${step.maxIterations}`)
  }
  const iterations = items.map(
    (item, index): ValueObject => ({ index: BigInt(index), item, status: 'cancelled', output: {} }),
  )
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  let next = 0
  let failure: { readonly error: unknown } | undefined
  const worker = async (): Promise<void> => {
    while (!failure && !both.aborted && next < items.length) {
      const index = next++
      const item = items[index]
      try {
        iterations[index] = await iterate(context, step, { index, item, data, signal: both, onRetry })
      } catch (error) {
        iterations[index] = { ...iterations[index], status: 'failed', error: messageOf(error) }
        if (step.tolerant && error instanceof StepError && !signal.aborted) continue
        failure ??= {
          error: error instanceof StepError ? new StepError(`iteration ${index}: ${error.message}`) : error,
        }
        stop.abort(new Error('another iteration failed'))
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(step.maxParallel, items.length) }, worker))
  if (signal.aborted) throw reasonOf(signal)
  if (failure) throw failure.error
  const completed = iterations.filter(({ status }) => status === 'completed').length
  const skipped = iterations.filter(({ status }) => status === 'skipped').length
  return {
    iterations,
    count: BigInt(items.length),
    completed: BigInt(completed),
    failed: BigInt(items.length - completed - skipped),
  }
}

interface Iteration {
  readonly index: number
  readonly item: TemplateValue
  readonly data: TemplateData
  readonly signal: AbortSignal
  readonly onRetry: () => void
}

async function iterate(
  context: Context,
  { itemVar, condition, call }: ForEach,
  { index, item, data, signal, onRetry }: Iteration,
): Promise<ValueObject> {
  const own: TemplateData = { ...data, forEach: { [itemVar]: item, index: BigInt(index) } }
  const entry = { index: BigInt(index), item }
  if (condition && !isTrue(condition, own)) return { ...entry, status: 'skipped', output: {} }
  const { timeoutMs } = call
  const limit =
    timeoutMs === undefined
      ? undefined
      : new Limit(
          context.parts.clock,
          signal,
          timeoutMs,
          () => new StepTimeout(timeoutMs, formatDuration(timeoutMs)),
        )
  try {
    const { output } = await callTool(context, call, own, limit?.signal ?? signal, onRetry)
    return { ...entry, status: 'completed', output }
  } finally {
    limit?.end()
  }
}

function messageOf(error: unknown): string {
  return error instanceof StepError ? error.message : 'cancelled'
}

/** The list that the template gives: as a value, or as JSON text; null is an empty list. */
function collectionOf({ collection }: ForEach, data: TemplateData): readonly TemplateValue[] {
  const single = singleValue(collection, data, 'collection')
  if (single && isList(single.value)) return single.value
  const text = expandText(collection, data, 'collection')
  const value = jsonOf(text)
  if (isList(value)) return value
  if (value === null) return []
  throw new StepError('collection must resolve to a JSON array')
}

function jsonOf(text: string): TemplateValue {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
