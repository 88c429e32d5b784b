/**
 * Tasks: tool calls that continue after the response. `open` runs before authorization and opens the id in a `tasks/*`
 * request. `own` runs calls as tasks of Gatehouse, and `relay` relays the tasks of backends.
 * Source: docs/guides/tasks.md; MCP 2025-11-25, tasks; ext-tasks.
 */
import { type Fields, GatehouseError, serverTools } from '../../../../schemas/index.ts'
import { type Era, type JsonObject, tasksExtension } from '../../../mcp/index.ts'
import type { Log } from '../../../net/index.ts'
import type { Store } from '../../../store/index.ts'
import type { Link, Operation } from '../../model/operation.ts'
import type { TaskShape } from '../../model/task.ts'
import type { ClientSession, OperationClient } from '../../model/session.ts'
import { HeldInputs } from './held-inputs.ts'
import { makeTaskIds, unknownTask } from './ids.ts'
import { LiveTasks } from './live-tasks.ts'
import { withTaskSupport } from './list.ts'
import { OwnedTasks } from './owned/owned-tasks.ts'
import { receiverOf, type RelayParts, sessionTaskVersion, TaskRelay } from './relay.ts'
import { SessionTaskIds } from './session-ids.ts'
import { TaskSessions } from './task-sessions.ts'
import { noTasks, type TaskSettings } from './settings.ts'
import { readTask, taskFor } from './shapes.ts'

export { taskSettings } from './settings.ts'
export { isTerminal } from './shapes.ts'

export interface TasksOptions {
  /** Returns the current settings, or undefined if tasks are off. */
  readonly settings: () => TaskSettings | undefined
  /** Identifies the server. All replicas of a server use the same value. */
  readonly server: string
  /** Returns key material that the replicas share; see `SealerOptions`. */
  readonly secrets: () => readonly string[]
  /** False while other replicas could not open the ids of this replica. */
  readonly isShared: () => boolean
  readonly backendFacts: RelayParts['backendFacts']
  /** Closes the connections of a task's session. With `gone`, also ends the session at the backend. */
  readonly endSession: (session: ClientSession, options: { readonly gone: boolean }) => void
  /** Store for the tasks that Gatehouse runs. */
  readonly store: Store
  readonly log: Log
  readonly now: () => number
}

export interface TaskFeature {
  /** True if tasks are on. */
  readonly isEnabled: () => boolean
  /** True if the server advertises tasks. */
  readonly isOffered: () => boolean
  /** Opens the id in a `tasks/*` request. */
  readonly open: Link
  /** Adds the support for tasks to lists of tools for session clients. */
  readonly list: Link
  /** Runs calls as tasks of Gatehouse. */
  readonly own: Link
  /** Relays the tasks of backends. */
  readonly relay: Link
  readonly live: LiveTasks
  /**
   * Returns the params of a backend's status notification for the client of a session. Undefined if the task is unknown
   * or the params are invalid.
   */
  statusFor(sessionId: string, backend: string, params: JsonObject): Buffer | undefined
  /** True if an id is valid for a client. */
  isValid(client: OperationClient, taskId: string): boolean
  close(): Promise<void>
}

const methods: Readonly<Record<Era, ReadonlySet<string>>> = {
  session: new Set(['tasks/get', 'tasks/result', 'tasks/cancel']),
  stateless: new Set(['tasks/get', 'tasks/update', 'tasks/cancel']),
}

/** True for a method that a client of this era uses for tasks. */
export function isTaskMethod(method: string, era: Era): boolean {
  return methods[era].has(method)
}

export function makeTasks(options: TasksOptions): TaskFeature {
  const { server, secrets, backendFacts, store, log, now } = options
  const settings = (): TaskSettings => options.settings() ?? noTasks
  const isEnabled = (): boolean => options.settings() !== undefined
  const isOffered = (): boolean => isEnabled() && options.isShared()
  const ids = makeTaskIds({ server, secrets, now })
  const live = new LiveTasks(settings, now)
  const inputs = new HeldInputs()
  const sessionIds = new SessionTaskIds()
  const sessions = new TaskSessions(options.endSession)
  const relay = new TaskRelay({ settings, ids, live, inputs, sessionIds, sessions, backendFacts, now })
  const owned = new OwnedTasks({ store, ids, live, settings, log, now })
  const lists = new WeakMap<Buffer, Buffer>()

  /** Returns the shape in which Gatehouse itself runs a call as a task, or undefined if it does not. */
  function ownShape(operation: Operation): TaskShape | undefined {
    const { method, target, params } = operation
    if (method !== 'tools/call' || !isOffered()) return undefined
    const receiver = receiverOf(operation)
    if (receiver === 'session') return target?.entry.taskSupport ? undefined : receiver
    const isScript = !target && params.text('name') === serverTools.executeToolScript
    const kind = target?.run ? 'workflows' : isScript ? 'scripts' : undefined
    return receiver && kind && settings().runAsTask.has(kind) && live.hasRoom(operation.client)
      ? receiver
      : undefined
  }

  return {
    isEnabled,
    isOffered,
    live,
    statusFor(sessionId, backend, params) {
      const ref = sessionIds.find(sessionId, backend, params.text('taskId') ?? '')
      if (!ref) return undefined
      try {
        const read = readTask(params, 'session', settings())
        return taskFor(read, ref.id, { from: 'session', to: 'session' }).bytes
      } catch {
        return undefined
      }
    },
    async open(operation, next) {
      const { method, client, params, id } = operation
      if (!isTaskMethod(method, client.era)) return next(operation)
      requireTasks(client)
      if (!options.isShared()) throw new GatehouseError('STORE_DOWN')
      const task = ids.open(params.text('taskId'), client)
      if (task.backend !== '' && backendFacts(task.backend)?.identity !== task.identity) throw unknownTask()
      if (method === 'tasks/get' && id !== undefined) live.pace(task)
      return next({ ...operation, task })
    },
    async list(operation, next) {
      const outcome = await next(operation)
      const { era, protocolVersion } = operation.client
      const isConcerned = era === 'session' && protocolVersion === sessionTaskVersion && isOffered()
      if (!isConcerned || outcome.kind !== 'result') return outcome
      const result = lists.get(outcome.result) ?? withTaskSupport(outcome.result)
      lists.set(outcome.result, result)
      return { kind: 'result', result }
    },
    own(operation, next) {
      const { task } = operation
      if (task?.backend === '') return owned.handle(operation, task)
      const shape = ownShape(operation)
      return shape ? owned.start(operation, next, shape) : next(operation)
    },
    relay(operation, next) {
      const { task, target, method } = operation
      if (task) return relay.handle(operation, task, next)
      return method === 'tools/call' && target && !target.run && isOffered()
        ? relay.call(operation, target, next)
        : next(operation)
    },
    isValid(client, taskId) {
      try {
        return ids.open(taskId, client) !== undefined
      } catch {
        return false
      }
    },
    async close() {
      inputs.close()
      await owned.close()
      // Without a shared key, the ids are lost with this process.
      sessions.close({ gone: secrets().length === 0 })
    },
  }
}

/** Throws CAPABILITY_REQUIRED if a stateless client has not declared the extension. */
export function requireTasks({ era, abilities }: OperationClient): void {
  if (era === 'session' || abilities.tasks) return
  throw new GatehouseError('CAPABILITY_REQUIRED', {
    detail: `the client has not declared the extension ${tasksExtension}`,
    data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
  })
}

/** Members of the advertised capabilities and of their `extensions`. */
export interface TaskCapabilities {
  readonly capabilities?: Fields
  readonly extensions?: Fields
}

/** Returns the capabilities with which the server advertises tasks to a client. */
export function taskCapabilities({ era, protocolVersion }: OperationClient): TaskCapabilities {
  if (era === 'stateless') return { extensions: { [tasksExtension]: {} } }
  return protocolVersion === sessionTaskVersion
    ? { capabilities: { tasks: { cancel: {}, requests: { tools: { call: {} } } } } }
    : {}
}
