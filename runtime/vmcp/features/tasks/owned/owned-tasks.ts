/**
 * Tasks that Gatehouse itself runs: workflows, scripts, and calls of backends that have no tasks of their own. The state
 * is in a store, so every replica can read it. The replica that runs a task holds a lease. If the lease is lost, the
 * task has failed.
 * Source: docs/guides/tasks.md.
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../../../schemas/index.ts'
import { type Ask, JsonObject } from '../../../../mcp/index.ts'
import { annotateTask } from '../../../../observe/index.ts'
import { type Log, pause } from '../../../../net/index.ts'
import type { Store } from '../../../../store/index.ts'
import type { Operation, Perform } from '../../../model/operation.ts'
import { type Outcome, resultOutcome } from '../../../model/outcome.ts'
import type { OperationClient } from '../../../model/session.ts'
import type { TaskRef, TaskShape } from '../../../model/task.ts'
import { type TaskIds, unknownTask } from '../ids.ts'
import { type LiveTasks, tooManyTasks } from '../live-tasks.ts'
import { inputResponses, requestedTtlMs, withRelatedTask } from '../requests.ts'
import type { TaskSettings } from '../settings.ts'
import { isTerminal, readTask, taskFor } from '../shapes.ts'
import { type OwnedRecord, OwnedRecords, taskObject } from './record.ts'
import { OwnedRun } from './run.ts'
import { recordBytes, TaskBudget, tooMuchMemory } from './task-budget.ts'

/** Interval at which `tasks/result` reads a task that another replica runs, in milliseconds. */
const remoteMs = 1_000

const statusNotification = 'notifications/tasks/status'

export interface OwnedTasksOptions {
  readonly store: Store
  readonly ids: TaskIds
  readonly live: LiveTasks
  readonly settings: () => TaskSettings
  readonly log: Log
  readonly now: () => number
}

export class OwnedTasks {
  readonly #options: OwnedTasksOptions
  readonly #records: OwnedRecords
  readonly #runs = new Map<string, OwnedRun>()
  readonly #budget: TaskBudget

  constructor(options: OwnedTasksOptions) {
    this.#options = options
    this.#records = new OwnedRecords(options.store, options.now)
    this.#budget = new TaskBudget(options.now)
  }

  /** Starts a task that performs the operation. Resolves when the task can be read. */
  async start(operation: Operation, next: Perform, receiver: TaskShape): Promise<Outcome> {
    const { ids, live, now } = this.#options
    const { client, params, target } = operation
    if (!live.hasRoom(client)) throw tooManyTasks()
    const settings = this.#options.settings()
    const { pollMs } = settings
    const ttlMs = requestedTtlMs(params, settings)
    const taskId = randomUUID()
    const tool = params.text('name') ?? ''
    const original = target?.entry.original ?? tool
    const ref = ids.seal(
      {
        ...{ backend: '', identity: '', taskId, tool, original, shape: 'extension', pollMs },
        notAfter: now() + ttlMs,
      },
      client,
    )
    const at = new Date(now()).toISOString()
    const record: OwnedRecord = {
      ...{ taskId, status: 'working', createdAt: at, lastUpdatedAt: at, ttlMs, pollIntervalMs: pollMs },
    }
    const release = this.#budget.reserve(client, recordBytes, ref.notAfter)
    if (!release) {
      if (receiver === 'session') throw tooMuchMemory()
      return next(operation)
    }
    live.add(ref, client)
    await this.#records.create(record).catch((error: unknown) => {
      live.forget(ref)
      release()
      throw error
    })
    annotateTask({ id: ref.hash, event: 'created' })
    this.#run(operation, next, ref, ttlMs)
    const shown = this.#shown(record, ref, receiver)
    const result =
      receiver === 'session' ? `{"task":${shown.bytes.toString()}}` : shown.with({ resultType: '"task"' })
    return { kind: 'task', result: Buffer.from(result) }
  }

  /** Handles a `tasks/*` request. */
  async handle(operation: Operation, ref: TaskRef): Promise<Outcome> {
    const { method, client, params } = operation
    const record = await this.#records.read(ref.taskId)
    if (!record) {
      this.#options.live.end(ref)
      throw unknownTask()
    }
    switch (method) {
      case 'tasks/get':
        return this.#get(record, ref, client)
      case 'tasks/result':
        return this.#result(operation, ref, record)
      case 'tasks/cancel':
        return this.#cancel(record, ref, client)
      default:
        return this.#update(record, ref, inputResponses(params))
    }
  }

  async close(): Promise<void> {
    const reason = new GatehouseError('SHUTTING_DOWN', { detail: 'the server that ran the task has stopped' })
    const runs = [...this.#runs.values()]
    for (const run of runs) run.cancel(reason)
    await Promise.all(runs.map(({ ended }) => ended))
  }

  #run(operation: Operation, next: Perform, ref: TaskRef, ttlMs: number): void {
    const { live, log } = this.#options
    const { taskId } = ref
    const { client } = operation
    const run = new OwnedRun(operation, next, {
      taskId,
      ttlMs,
      records: this.#records,
      reserve: (bytes) => this.#budget.reserve(client, bytes, ref.notAfter),
      onChange: (record) => {
        live.setState(ref, record.status)
        client.session?.deliver('', statusNotification, this.#shown(record, ref, 'session').bytes)
      },
      onWriteFailed: (err) => log.warn('failed to store the state of a task', { task: ref.hash, err }),
    })
    this.#runs.set(taskId, run)
    void run.ended.then(() => {
      this.#runs.delete(taskId)
      live.forget(ref)
    })
  }

  /** Returns the task object without its result. */
  #shown(record: OwnedRecord, ref: TaskRef, to: TaskShape): JsonObject {
    const read = readTask(taskObject(record), 'extension', this.#options.settings())
    const isToolError = to === 'session' && isErrorResult(record)
    return taskFor(read, ref.id, { from: 'extension', to }, isToolError ? { status: '"failed"' } : {})
  }

  #get(record: OwnedRecord, ref: TaskRef, { era }: OperationClient): Outcome {
    const shown = this.#shown(record, ref, era === 'session' ? 'session' : 'extension')
    if (isTerminal(record.status)) this.#recordEnd(ref)
    if (era === 'session') return { kind: 'result', result: shown.bytes }
    const { end, inputRequests } = record
    const more = {
      ...(end && { [end.kind]: end.json }),
      ...(inputRequests !== undefined && { inputRequests }),
    }
    return { kind: 'result', result: shown.with(more) }
  }

  #recordEnd(ref: TaskRef): void {
    if (this.#options.live.end(ref)) annotateTask({ id: ref.hash, event: 'result_read' })
  }

  /** Waits for the end of the task, and asks its questions in the meantime. */
  async #result({ context }: Operation, ref: TaskRef, first: OwnedRecord): Promise<Outcome> {
    const asked = new Set<string>()
    for (let record: OwnedRecord | undefined = first; ; record = await this.#records.read(ref.taskId)) {
      if (!record) throw unknownTask()
      if (isTerminal(record.status)) {
        this.#recordEnd(ref)
        return resultOf(record, ref)
      }
      const run = this.#runs.get(ref.taskId)
      for (const [key, question] of run?.questions.entries() ?? storedQuestions(record)) {
        if (asked.has(key)) continue
        asked.add(key)
        const params = question.params && withRelatedTask(question.params, ref.id)
        context
          .ask({ method: question.method, params }, context.signal)
          .then((reply) =>
            run ? run.questions.answer(key, reply) : this.#records.storeAnswer(ref.taskId, key, reply),
          )
          .catch(() => asked.delete(key))
      }
      // A new question, the end of the task, or the pause wakes this loop.
      const woken = run ? run.questions.waitForChange(remoteMs) : pause(remoteMs, context.signal)
      await woken
      context.signal.throwIfAborted()
    }
  }

  async #cancel(record: OwnedRecord, ref: TaskRef, client: OperationClient): Promise<Outcome> {
    annotateTask({ id: ref.hash, event: 'cancelled' })
    const { live } = this.#options
    live.resetPace(ref)
    const cancelled = await this.#records.change(ref.taskId, () => ({
      status: 'cancelled',
      inputRequests: undefined,
    }))
    if (cancelled) {
      live.forget(ref)
      const run = this.#runs.get(ref.taskId)
      if (run) run.cancel(new Error('the client cancelled the task'))
      else await this.#records.requestCancel(ref.taskId)
    }
    if (client.era === 'stateless') return resultOutcome({})
    if (!cancelled || isTerminal(record.status)) throw alreadyEnded()
    return { kind: 'result', result: this.#shown(cancelled, ref, 'session').bytes }
  }

  async #update(record: OwnedRecord, ref: TaskRef, responses: JsonObject): Promise<Outcome> {
    annotateTask({ id: ref.hash, event: 'updated' })
    this.#options.live.resetPace(ref)
    const run = this.#runs.get(ref.taskId)
    if (run) run.questions.answerAll(responses)
    else
      for (const [key] of storedQuestions(record)) {
        const result = responses.raw(key)
        if (result?.[0] === 0x7b) await this.#records.storeAnswer(ref.taskId, key, { result })
      }
    return resultOutcome({})
  }
}

/** Returns the questions of a task that another replica runs. */
function storedQuestions({ inputRequests }: OwnedRecord): readonly [key: string, Ask][] {
  if (inputRequests === undefined) return []
  return new JsonObject(Buffer.from(inputRequests)).entries().map(([key, raw]) => {
    const question = new JsonObject(raw)
    return [key, { method: question.text('method') ?? '', params: question.raw('params') }]
  })
}

function isErrorResult({ end }: OwnedRecord): boolean {
  return (
    end?.kind === 'result' &&
    end.json.includes('"isError"') &&
    new JsonObject(Buffer.from(end.json)).value('isError') === true
  )
}

function resultOf({ status, end }: OwnedRecord, ref: TaskRef): Outcome {
  if (!end) throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: the task is ${status}` })
  const bytes = Buffer.from(end.json)
  return end.kind === 'error'
    ? { kind: 'error', error: bytes }
    : { kind: 'result', result: withRelatedTask(bytes, ref.id) }
}

function alreadyEnded(): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: the task has already ended' })
}
