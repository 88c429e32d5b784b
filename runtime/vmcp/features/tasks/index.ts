/**
 * Tasks: tool calls that continue after the response. Two links implement them. `open` runs before authorization and
 * opens the id in a `tasks/*` request. `relay` is the last link before `send`.
 * Source: docs/guides/tasks.md; MCP 2025-11-25, tasks; ext-tasks.
 */
import { type Fields, GatehouseError } from '../../../../schemas/index.ts'
import { type Era, tasksExtension } from '../../../mcp/index.ts'
import type { Link } from '../../model/operation.ts'
import type { OperationClient } from '../../model/session.ts'
import { HeldInputs } from './held-inputs.ts'
import { makeTaskIds, unknownTask } from './ids.ts'
import { LiveTasks } from './live-tasks.ts'
import { type RelayParts, sessionTaskVersion, TaskRelay } from './relay.ts'
import { SessionTaskIds } from './session-ids.ts'
import { noTasks, type TaskSettings } from './settings.ts'

export { taskSettings } from './settings.ts'

export interface TasksOptions {
  /** Returns the current settings, or undefined if tasks are off. */
  readonly settings: () => TaskSettings | undefined
  /** Identifies the server. All replicas of a server use the same value. */
  readonly server: string
  /** Returns key material that the replicas share. */
  readonly secret: () => string | undefined
  /** False while other replicas could not open the ids of this replica. */
  readonly isShared: () => boolean
  readonly backendFacts: RelayParts['backendFacts']
  readonly now: () => number
}

export interface Tasks {
  /** True if tasks are on. */
  readonly isEnabled: () => boolean
  /** True if the server advertises tasks. */
  readonly isOffered: () => boolean
  /** Opens the id in a `tasks/*` request. */
  readonly open: Link
  /** Relays the tasks of backends. */
  readonly relay: Link
  readonly live: LiveTasks
  /** Returns the client's id and the params of a status notification from a backend, or undefined if it is unknown. */
  readonly sessionIds: SessionTaskIds
  close(): void
}

const methods: Readonly<Record<Era, ReadonlySet<string>>> = {
  session: new Set(['tasks/get', 'tasks/result', 'tasks/cancel']),
  stateless: new Set(['tasks/get', 'tasks/update', 'tasks/cancel']),
}

/** True for a method that a client of this era uses for tasks. */
export function isTaskMethod(method: string, era: Era): boolean {
  return methods[era].has(method)
}

export function makeTasks(options: TasksOptions): Tasks {
  const { server, secret, backendFacts, now } = options
  const settings = (): TaskSettings => options.settings() ?? noTasks
  const isEnabled = (): boolean => options.settings() !== undefined
  const isOffered = (): boolean => isEnabled() && options.isShared()
  const ids = makeTaskIds({ server, secret, now })
  const live = new LiveTasks(settings, now)
  const inputs = new HeldInputs()
  const sessionIds = new SessionTaskIds()
  const relay = new TaskRelay({ settings, ids, live, inputs, sessionIds, backendFacts, now })
  return {
    isEnabled,
    isOffered,
    live,
    sessionIds,
    async open(operation, next) {
      const { method, client, params, id } = operation
      if (!isTaskMethod(method, client.era)) return next(operation)
      requireTasks(client)
      const task = ids.open(params.text('taskId'), client)
      if (task.backend !== '' && backendFacts(task.backend)?.identity !== task.identity) throw unknownTask()
      if (method === 'tasks/get' && id !== undefined) live.pace(task)
      return next({ ...operation, task })
    },
    relay(operation, next) {
      const { task, target, method } = operation
      if (task) return relay.handle(operation, task, next)
      return method === 'tools/call' && target && !target.run && isOffered()
        ? relay.call(operation, target, next)
        : next(operation)
    },
    close: () => inputs.close(),
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
