/**
 * Translates task objects between their two shapes. Unknown members pass through unchanged.
 * Source: MCP 2025-11-25, tasks, "Data Types"; ext-tasks, "Tasks".
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import type { TaskShape } from '../../model/task.ts'

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
const statuses: ReadonlySet<string> = new Set([
  'working',
  'input_required',
  'completed',
  'failed',
  'cancelled',
])
const maxTaskIdBytes = 1024
/** Bounds of the interval between two reads, in milliseconds. */
const minPollMs = 100
const maxPollMs = 3_600_000

const names = {
  session: { ttl: 'ttl', poll: 'pollInterval' },
  extension: { ttl: 'ttlMs', poll: 'pollIntervalMs' },
} as const

/** The members of a task object that Gatehouse uses. */
export interface ReadTask {
  readonly object: JsonObject
  readonly taskId: string
  readonly status: TaskStatus
  /** Remaining lifetime in milliseconds, at most the configured maximum. */
  readonly ttlMs: number
  readonly pollMs: number
}

export interface TaskBounds {
  readonly maxTtlMs: number
  readonly pollMs: number
}

/** Reads a backend's task object. Throws BACKEND_PROTOCOL if a member that Gatehouse needs is invalid. */
export function readTask(object: JsonObject, shape: TaskShape, bounds: TaskBounds): ReadTask {
  const taskId = object.text('taskId')
  const status = object.text('status')
  if (taskId === undefined || taskId === '' || Buffer.byteLength(taskId) > maxTaskIdBytes)
    throw invalidTask('a task without a valid taskId')
  if (!isStatus(status)) throw invalidTask('a task with an unknown status')
  const { ttl, poll } = names[shape]
  const pollMs = finite(object.value(poll)) ?? bounds.pollMs
  return {
    object,
    taskId,
    status,
    ttlMs: Math.min(finite(object.value(ttl)) ?? bounds.maxTtlMs, bounds.maxTtlMs),
    pollMs: Math.min(Math.max(pollMs, minPollMs), maxPollMs),
  }
}

function isStatus(status: string | undefined): status is TaskStatus {
  return status !== undefined && statuses.has(status)
}

export function isTerminal(status: string | undefined): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined
}

/** Returns a task object in the client's shape, with the client's id and the effective ttl and poll interval. */
export function taskFor(
  { object, ttlMs, pollMs }: ReadTask,
  id: string,
  { from, to }: { readonly from: TaskShape; readonly to: TaskShape },
  more: Readonly<Record<string, Buffer | string | undefined>> = {},
): JsonObject {
  const changes: Record<string, Buffer | string | undefined> = {}
  for (const name of Object.values(names[from])) if (object.raw(name)) changes[name] = undefined
  // These members belong to the result, not to the task.
  for (const name of ['resultType', 'cacheScope']) if (object.raw(name)) changes[name] = undefined
  const now = JSON.stringify(new Date().toISOString())
  for (const name of ['createdAt', 'lastUpdatedAt']) if (object.text(name) === undefined) changes[name] = now
  return new JsonObject(
    object.with({
      ...changes,
      taskId: JSON.stringify(id),
      [names[to].ttl]: String(ttlMs),
      [names[to].poll]: String(pollMs),
      ...more,
    }),
  )
}

function invalidTask(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(`the backend returned ${what}`) })
}
