/**
 * Relays the tasks of backends. Seals their ids for the client, and translates between the two shapes of tasks.
 *
 * A client that cannot receive a task gets the finished result, if the task ends within the time limit of the call.
 * This link is the last before `send`, so every check applies to the result, whether it arrives early or late.
 * Source: docs/guides/tasks.md; MCP 2025-11-25, tasks; ext-tasks.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Ask, type AskReply, JsonObject, requireAbility } from '../../../mcp/index.ts'
import { annotateTask } from '../../../observe/index.ts'
import { deriveContext, type Operation, type Perform, type Target } from '../../model/operation.ts'
import { type Outcome, resultOutcome } from '../../model/outcome.ts'
import type { OperationClient } from '../../model/session.ts'
import type { TaskRef, TaskShape } from '../../model/task.ts'
import type { HeldInputs } from './held-inputs.ts'
import type { TaskIds } from './ids.ts'
import { type LiveTasks, tooManyTasks } from './live-tasks.ts'
import type { SessionTaskIds } from './session-ids.ts'
import {
  type BackendTask,
  inputResponses,
  requestedTtlMs,
  requestTask,
  requiresTasks,
  resultOf,
  type TaskMethod,
  withRelatedTask,
} from './requests.ts'
import type { TaskSettings } from './settings.ts'
import { isTerminal, type ReadTask, readTask, taskFor } from './shapes.ts'
import { TaskSession, type TaskSessions } from './task-sessions.ts'
import { waitForResult } from './wait.ts'

export interface RelayParts {
  readonly settings: () => TaskSettings
  readonly ids: TaskIds
  readonly live: LiveTasks
  readonly inputs: HeldInputs
  readonly sessionIds: SessionTaskIds
  readonly sessions: TaskSessions
  /** Returns a backend's identity and time limit, or undefined if the backend was removed. */
  readonly backendFacts: (
    name: string,
  ) => { readonly identity: string; readonly timeoutMs: number } | undefined
  readonly now: () => number
}

/** The only session-era revision with tasks. */
export const sessionTaskVersion = '2025-11-25'

/** How a client receives tasks. Undefined if the client gets only finished results. */
export function receiverOf({ id, client, params }: Operation): TaskShape | undefined {
  // Calls from scripts and workflows have no id, and their results must be complete.
  if (id === undefined) return undefined
  if (client.era === 'stateless') return client.abilities.tasks ? 'extension' : undefined
  return client.protocolVersion === sessionTaskVersion && params.raw('task')?.[0] === 0x7b
    ? 'session'
    : undefined
}

export class TaskRelay {
  readonly #parts: RelayParts

  constructor(parts: RelayParts) {
    this.#parts = parts
  }

  /** Calls a backend's tool. */
  async call(operation: Operation, target: Target, send: Perform): Promise<Outcome> {
    const { live } = this.#parts
    const settings = this.#parts.settings()
    const { client } = operation
    const { taskSupport } = target.entry
    const receiver = receiverOf(operation)
    const hasRoom = receiver !== undefined && live.hasRoom(client)
    const isWanted =
      receiver === 'session' || (receiver === 'extension' && settings.runAsTask.has('optionalTools'))
    const isRequested = taskSupport === 'required' || (taskSupport === 'optional' && isWanted)
    if (isRequested && receiver && !hasRoom) throw tooManyTasks()
    const accepts = isRequested || (receiver === 'extension' && hasRoom)
    // The backend may accept requests about the task only in the session in which it was created.
    const session = isRequested && !client.session ? new TaskSession() : undefined
    const within = session ? { ...operation, client: { ...client, session } } : operation
    let isKept = false
    try {
      const asked = isRequested
        ? { ...target, changes: { ...target.changes, task: this.#ttlOf(operation) } }
        : target
      let outcome = await send({ ...within, target: asked, tasks: accepts ? 'accepted' : undefined })
      if (requiresTasks(outcome) && !accepts) {
        if (receiver) throw tooManyTasks()
        outcome = await send({ ...within, target, tasks: 'accepted' })
      }
      if (outcome.kind !== 'task') return outcome
      const { task, shape } = this.#created(outcome.result)
      const backendTask = { operation: within, target, taskId: task.taskId, send }
      if (receiver) {
        const created = await this.#create(backendTask, client, outcome.result, task, {
          from: shape,
          to: receiver,
          session,
        })
        isKept = true
        return created
      }
      const timeoutMs = Math.max(target.timeoutMs ?? 0, this.#factsOf(target.entry.backend).timeoutMs)
      return await waitForResult(backendTask, task, { shape, timeoutMs, bounds: settings })
    } finally {
      if (session && !isKept) this.#parts.sessions.discard(session)
    }
  }

  /** Handles a `tasks/*` request for a task of a backend. */
  async handle(operation: Operation, ref: TaskRef, send: Perform): Promise<Outcome> {
    const { target, method } = operation
    if (!target) throw new GatehouseError('METHOD_NOT_FOUND')
    const task = { operation: this.#parts.sessions.attach(operation, ref), target, taskId: ref.taskId, send }
    try {
      return await this.#perform(task, ref)
    } catch (error) {
      // The backend no longer has the task. For updates, the error may also mean that an answer is invalid.
      const isLost = error instanceof GatehouseError && error.code === 'INVALID_PARAMS'
      if (isLost && method !== 'tasks/update') this.#forget(ref)
      throw error
    }
  }

  async #perform(task: BackendTask, ref: TaskRef): Promise<Outcome> {
    const { method, client, params } = task.operation
    switch (method as TaskMethod) {
      case 'tasks/get':
        return this.#get(task, ref)
      case 'tasks/result':
        return this.#result(task, ref)
      case 'tasks/cancel': {
        const outcome = await this.#cancel(task, ref, client)
        if (outcome.kind !== 'error') this.#forget(ref)
        return outcome
      }
      default:
        return this.#update(task, ref, inputResponses(params))
    }
  }

  #forget(ref: TaskRef): void {
    this.#parts.live.forget(ref)
    this.#parts.inputs.end(ref)
  }

  /** Returns the `task` member for a session-era backend, with the client's lifetime up to the maximum. */
  #ttlOf({ params }: Operation): string {
    return JSON.stringify({ ttl: requestedTtlMs(params, this.#parts.settings()) })
  }

  #factsOf(backend: string): { readonly identity: string; readonly timeoutMs: number } {
    const facts = this.#parts.backendFacts(backend)
    if (!facts) throw new GatehouseError('BACKEND_UNAVAILABLE')
    return facts
  }

  #created(result: Buffer): { readonly task: ReadTask; readonly shape: TaskShape } {
    const object = new JsonObject(result)
    const own = object.text('resultType') === 'task' ? undefined : object.object('task')
    const shape = own ? 'session' : 'extension'
    return { task: readTask(own ?? object, shape, this.#parts.settings()), shape }
  }

  async #create(
    backendTask: BackendTask,
    client: OperationClient,
    result: Buffer,
    task: ReadTask,
    { from, to, session }: CreateOptions,
  ): Promise<Outcome> {
    const { ids, live, sessionIds, sessions, now } = this.#parts
    const { backend, key: tool, original } = backendTask.target.entry
    if (!live.hasRoom(client)) {
      await requestTask(backendTask, 'tasks/cancel').catch(() => {})
      throw tooManyTasks()
    }
    const { taskId, ttlMs, pollMs, status } = task
    const { identity } = this.#factsOf(backend)
    const notAfter = now() + ttlMs
    const ref = ids.seal(
      {
        ...{ backend, identity, taskId, tool, original, shape: from, notAfter, pollMs },
        session: session?.opened,
      },
      client,
    )
    if (session) sessions.keep(ref, session)
    annotateTask({ id: ref.hash, event: 'created' })
    if (!isTerminal(status)) live.add(ref, client)
    if (client.session) sessionIds.add(client.session.id, ref)
    const shown = taskFor(task, ref.id, { from, to })
    return { kind: 'task', result: createResult(result, shown, { from, to }) }
  }

  async #get(task: BackendTask, ref: TaskRef): Promise<Outcome> {
    const { client } = task.operation
    const to = client.era === 'session' ? 'session' : 'extension'
    const outcome = await requestTask(task, 'tasks/get')
    if (outcome.kind === 'error') return outcome
    const read = readTask(new JsonObject(resultOf(outcome)), ref.shape, this.#parts.settings())
    if (read.taskId !== ref.taskId)
      throw new GatehouseError('BACKEND_PROTOCOL', { cause: new Error('the backend returned another task') })
    const isInlined = ref.shape === 'session' && to === 'extension'
    const more = isInlined ? await this.#inlined(task, ref, read) : {}
    if (isTerminal(read.status)) this.#recordEnd(ref)
    else this.#parts.live.setState(ref, read.status)
    const shown = taskFor(read, ref.id, { from: ref.shape, to }, more)
    requireInputs(client, shown.object('inputRequests'))
    return { kind: 'result', result: shown.bytes }
  }

  #recordEnd(ref: TaskRef): void {
    this.#parts.inputs.end(ref)
    if (this.#parts.live.end(ref)) annotateTask({ id: ref.hash, event: 'result_read' })
  }

  /** Returns the members that the extension inlines, from a session-era backend. */
  async #inlined(
    task: BackendTask,
    ref: TaskRef,
    { status }: ReadTask,
  ): Promise<Readonly<Record<string, Buffer | string>>> {
    if (status === 'input_required') {
      const requests = await this.#parts.inputs.read(ref, (ask, signal) => this.#hold(task, ref, ask, signal))
      return requests ? { inputRequests: requests } : { status: '"working"' }
    }
    if (status !== 'completed' && status !== 'failed') return {}
    const outcome = await requestTask(task, 'tasks/result')
    if (outcome.kind === 'error') return { status: '"failed"', error: outcome.error }
    // A result with `isError` is complete. Only JSON-RPC errors fail a task of the extension.
    return { status: '"completed"', result: withRelatedTask(resultOf(outcome), undefined) }
  }

  /** Keeps `tasks/result` open, so that the backend can ask questions. */
  #hold(
    task: BackendTask,
    ref: TaskRef,
    ask: (request: Ask, signal?: AbortSignal) => Promise<AskReply>,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { operation } = task
    const { abilities } = operation.client
    const context = deriveContext(operation.context, {
      signal,
      progress: () => {},
      log: () => {},
      streamResult: () => undefined,
      ask: (request, withdrawn) => {
        requireAbility(abilities, request)
        return ask(linked(request, undefined), withdrawn)
      },
    })
    return requestTask({ ...task, operation: { ...operation, context } }, 'tasks/result', {
      timeoutMs: this.#leftMs(ref),
    })
  }

  #leftMs({ notAfter }: TaskRef): number {
    return Math.max(1, notAfter - this.#parts.now())
  }

  /** Waits for the result, as `tasks/result` of 2025-11-25 requires. */
  async #result(task: BackendTask, ref: TaskRef): Promise<Outcome> {
    const { operation } = task
    const context = deriveContext(operation.context, {
      streamResult: () => undefined,
      ask: (request, signal) => operation.context.ask(linked(request, ref.id), signal),
    })
    const outcome = await requestTask({ ...task, operation: { ...operation, context } }, 'tasks/result', {
      timeoutMs: this.#leftMs(ref),
    })
    this.#recordEnd(ref)
    if (outcome.kind !== 'result') return outcome
    return { kind: 'result', result: withRelatedTask(outcome.result, ref.id) }
  }

  async #update(task: BackendTask, ref: TaskRef, responses: JsonObject): Promise<Outcome> {
    annotateTask({ id: ref.hash, event: 'updated' })
    this.#parts.live.resetPace(ref)
    if (ref.shape === 'session') {
      this.#parts.inputs.answer(ref, responses)
      return resultOutcome({})
    }
    const outcome = await requestTask(task, 'tasks/update', { members: { inputResponses: responses.bytes } })
    return outcome.kind === 'error' ? outcome : resultOutcome({})
  }

  async #cancel(task: BackendTask, ref: TaskRef, client: OperationClient): Promise<Outcome> {
    annotateTask({ id: ref.hash, event: 'cancelled' })
    this.#parts.live.resetPace(ref)
    if (client.era === 'session') {
      const outcome = await requestTask(task, 'tasks/cancel')
      if (outcome.kind === 'error') return outcome
      const read = readTask(new JsonObject(resultOf(outcome)), ref.shape, this.#parts.settings())
      return {
        kind: 'result',
        result: taskFor(read, ref.id, { from: ref.shape, to: 'session' }).bytes,
      }
    }
    try {
      const outcome = await requestTask(task, 'tasks/cancel')
      return outcome.kind === 'error' ? outcome : resultOutcome({})
    } catch (error) {
      // A session-era backend rejects the cancellation of a task that has ended. The extension only acknowledges.
      if (ref.shape === 'session' && error instanceof GatehouseError && error.code === 'INVALID_PARAMS')
        return resultOutcome({})
      throw error
    }
  }
}

interface CreateOptions {
  readonly from: TaskShape
  readonly to: TaskShape
  /** The session in which the task was created. */
  readonly session: TaskSession | undefined
}

/** Returns the result of a tool call that became a task, in the client's shape. */
function createResult(
  result: Buffer,
  shown: JsonObject,
  { from, to }: { readonly from: TaskShape; readonly to: TaskShape },
): Buffer {
  if (to === 'session') return Buffer.from(`{"task":${shown.bytes.toString()}}`)
  const meta = from === 'session' ? new JsonObject(result).raw('_meta') : undefined
  return shown.with({ resultType: '"task"', ...(meta && { _meta: meta }) })
}

/** Throws CAPABILITY_REQUIRED if a backend requests input that the client does not support. */
function requireInputs({ abilities }: OperationClient, requests: JsonObject | undefined): void {
  for (const [, raw] of requests?.entries() ?? []) {
    const question = raw[0] === 0x7b ? new JsonObject(raw) : undefined
    const method = question?.text('method')
    if (!question || method === undefined) throw new GatehouseError('BACKEND_PROTOCOL')
    requireAbility(abilities, { method, params: question.raw('params') })
  }
}

/** Replaces the backend's task id in a question. */
function linked({ method, params }: Ask, id: string | undefined): Ask {
  if (params?.[0] !== 0x7b) return { method, params }
  return { method, params: withRelatedTask(params, id) }
}
