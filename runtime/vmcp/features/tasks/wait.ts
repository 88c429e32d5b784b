/**
 * Waits for a backend's task on behalf of a client that cannot receive tasks. The task is cancelled if it does not end
 * within the time limit of the call, or if the client gives up.
 * Source: docs/guides/tasks.md, "Clients without tasks".
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject, respondToInputRequests, tasksExtension } from '../../../mcp/index.ts'
import { Deadline, pause } from '../../../net/index.ts'
import { deriveContext } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { TaskShape } from '../../model/task.ts'
import { type BackendTask, requestTask, resultOf, withRelatedTask } from './requests.ts'
import { type ReadTask, readTask, type TaskBounds } from './shapes.ts'

/** Time limit for the cancellation of a task, in milliseconds. */
const cancelMs = 2_000

export interface WaitOptions {
  readonly shape: TaskShape
  readonly timeoutMs: number
  readonly bounds: TaskBounds
}

export async function waitForResult(
  task: BackendTask,
  created: ReadTask,
  options: WaitOptions,
): Promise<Outcome> {
  const { operation } = task
  const deadline = new Deadline(options.timeoutMs, operation.context.signal)
  const context = deriveContext(operation.context, { signal: deadline.signal, streamResult: () => undefined })
  const waiting = { ...task, operation: { ...operation, context } }
  try {
    return options.shape === 'session'
      ? await sessionResult(waiting, options)
      : await extensionResult(waiting, created, deadline, options)
  } catch (error) {
    await cancel(task)
    const isLate = deadline.aborted && !operation.context.signal.aborted
    const timedOut = error instanceof GatehouseError && error.code === 'BACKEND_TIMEOUT'
    throw isLate || timedOut ? tooSlow(task) : error
  } finally {
    deadline.end()
  }
}

async function sessionResult(task: BackendTask, { timeoutMs }: WaitOptions): Promise<Outcome> {
  const outcome = await requestTask(task, 'tasks/result', { timeoutMs })
  if (outcome.kind !== 'result') return outcome
  return { kind: 'result', result: withRelatedTask(outcome.result, undefined) }
}

async function extensionResult(
  task: BackendTask,
  created: ReadTask,
  deadline: Deadline,
  { bounds }: WaitOptions,
): Promise<Outcome> {
  const { context } = task.operation
  const answered = new Set<string>()
  for (let { pollMs } = created; ; ) {
    await pause(pollMs, deadline)
    const outcome = await requestTask(task, 'tasks/get')
    if (outcome.kind === 'error') return outcome
    const read = readTask(new JsonObject(resultOf(outcome)), 'extension', bounds)
    const { object, status } = read
    pollMs = read.pollMs
    if (status === 'completed') {
      const result = object.raw('result')
      if (result?.[0] !== 0x7b) throw new GatehouseError('BACKEND_PROTOCOL')
      return { kind: 'result', result }
    }
    if (status === 'failed') {
      const error = object.raw('error')
      if (error?.[0] !== 0x7b) throw new GatehouseError('BACKEND_PROTOCOL')
      return { kind: 'error', error }
    }
    if (status === 'cancelled')
      throw new GatehouseError('BACKEND_FAILED', { detail: 'the backend cancelled the task' })
    const asked = object.object('inputRequests')?.entries() ?? []
    // A task may repeat a question until it has processed the answer.
    const questions = asked.filter(([key]) => !answered.has(key))
    if (status !== 'input_required' || questions.length === 0) continue
    for (const [key] of questions) answered.add(key)
    const requests = questions.map(([key, raw]) => `${JSON.stringify(key)}:${raw.toString()}`)
    const resume = deadline.pause()
    const { inputResponses } = await respondToInputRequests(
      Buffer.from(`{"inputRequests":{${requests.join(',')}}}`),
      (request, signal) => context.ask(request, signal),
      deadline.signal,
    )
    resume()
    if (inputResponses) await requestTask(task, 'tasks/update', { members: { inputResponses } })
  }
}

/** Cancels the task. Never rejects. */
async function cancel(task: BackendTask): Promise<void> {
  const { operation } = task
  const signal = AbortSignal.timeout(cancelMs)
  const { lazySignal: _, ...context } = deriveContext(operation.context, {
    signal,
    streamResult: () => undefined,
  })
  const cancelling = { ...task, operation: { ...operation, context } }
  await requestTask(cancelling, 'tasks/cancel', { timeoutMs: cancelMs }).catch(() => {})
}

/** Returns the error for a task that did not end within the time limit of the call. */
function tooSlow({ operation, target }: BackendTask): GatehouseError {
  const { backend, key } = target.entry
  const detail = `tool ${key} did not finish in time; call it as a task`
  if (operation.client.era === 'session')
    return new GatehouseError('BACKEND_TIMEOUT', { detail, data: { backend } })
  return new GatehouseError('CAPABILITY_REQUIRED', {
    detail,
    data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
  })
}
