/** Reads the requests of clients about tasks, and sends requests to the backends of tasks. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Changes, emptyObject, JsonObject, rpcCode, tasksExtension } from '../../../mcp/index.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { Operation, Perform, Target } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import { relatedTask, type TaskRef } from '../../model/task.ts'
import { unknownTask } from './ids.ts'
import type { TaskSettings } from './settings.ts'

export type TaskMethod = 'tasks/get' | 'tasks/result' | 'tasks/update' | 'tasks/cancel'

export interface BackendTask {
  readonly operation: Operation
  readonly target: Target
  /** The backend's own task id. */
  readonly taskId: string
  /** Sends an operation to the backend. */
  readonly send: Perform
}

export interface TaskRequestOptions {
  /** Members of the params. */
  readonly members?: Changes
  readonly timeoutMs?: number | undefined
}

/**
 * Sends a request about a task to its backend. Throws INVALID_PARAMS if the backend does not have the task. Rejects with
 * the backend's errors.
 */
export async function requestTask(
  { operation, target, taskId, send }: BackendTask,
  method: TaskMethod,
  { members = {}, timeoutMs = target.timeoutMs }: TaskRequestOptions = {},
): Promise<Outcome> {
  const meta = operation.params.raw('_meta')
  const head = `{"taskId":${JSON.stringify(taskId)}`
  const params = new JsonObject(Buffer.from(meta ? `${head},"_meta":${meta.toString()}}` : `${head}}`))
  const outcome = await send({
    ...operation,
    method,
    params,
    tasks: 'declared',
    target: { ...target, entry: entryForTask(target.entry), changes: members, timeoutMs },
  })
  if (outcome.kind === 'error' && codeOf(outcome) === rpcCode.invalidParams) throw unknownTask()
  return outcome
}

/** Returns an entry without the members that apply only to calls. */
function entryForTask({ key, backend, original, json }: CatalogEntry): CatalogEntry {
  return { key, backend, original, json, mirrored: [] }
}

/** Returns the lifetime that a client requests for a task, up to the maximum, in milliseconds. */
export function requestedTtlMs(params: JsonObject, { maxTtlMs }: Pick<TaskSettings, 'maxTtlMs'>): number {
  const ttl = params.object('task')?.value('ttl')
  const isValid = typeof ttl === 'number' && Number.isSafeInteger(ttl) && ttl > 0
  return isValid ? Math.min(ttl, maxTtlMs) : maxTtlMs
}

/** Returns the answers in the params of `tasks/update`. Throws INVALID_PARAMS if they are missing. */
export function inputResponses(params: JsonObject): JsonObject {
  const responses = params.object('inputResponses')
  if (responses) return responses
  throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: inputResponses must be an object' })
}

/** Returns the target of a request about a task. Undefined if Gatehouse itself runs the task. */
export function taskTarget(
  tools: ReadonlyMap<string, CatalogEntry>,
  { tool, backend, original }: TaskRef,
): Target | undefined {
  if (backend === '') return undefined
  const known = tools.get(tool)
  const isSame = known?.backend === backend && known.original === original
  const json = isSame ? known.json : emptyObject.bytes
  return { entry: entryForTask({ key: tool, backend, original, json }), changes: {} }
}

/** Returns the raw result. Throws BACKEND_PROTOCOL for other outcomes. */
export function resultOf(outcome: Outcome): Buffer {
  if (outcome.kind === 'result') return outcome.result
  throw new GatehouseError('BACKEND_PROTOCOL', {
    cause: new Error('the backend did not respond with a task'),
  })
}

function codeOf({ error }: Extract<Outcome, { kind: 'error' }>): unknown {
  return new JsonObject(error).value('code')
}

/** True if a backend requires that the client accepts tasks. */
export function requiresTasks(outcome: Outcome): boolean {
  return (
    outcome.kind === 'error' &&
    outcome.error.includes(tasksExtension) &&
    codeOf(outcome) === rpcCode.capabilityRequired
  )
}

/** Sets the client's task id in the `_meta` of a message of 2025-11-25. Without an id, removes the link to the task. */
export function withRelatedTask(raw: Buffer, id: string | undefined): Buffer {
  const object = new JsonObject(raw)
  const meta = object.object('_meta')
  const link = id === undefined ? undefined : JSON.stringify({ taskId: id })
  if (!meta) return link === undefined ? raw : object.with({ _meta: `{"${relatedTask}":${link}}` })
  const keepsMeta = link !== undefined || meta.names().some((name) => name !== relatedTask)
  return object.with({ _meta: keepsMeta ? meta.with({ [relatedTask]: link }) : undefined })
}
