/** A task, as the chain sees it: a tool call that continues after its response. */
import { JsonObject } from '../../mcp/index.ts'
import type { Outcome } from './outcome.ts'
import type { BackendSession } from './session.ts'

/** The two shapes of tasks: the tasks of 2025-11-25, and the extension of 2026-07-28. */
export type TaskShape = 'session' | 'extension'

/** The task that a `tasks/*` request names. */
export interface TaskRef {
  /** The id that the client uses. */
  readonly id: string
  /** Hash of `id`, for logs and maps. */
  readonly hash: string
  /** Empty if Gatehouse itself runs the task. */
  readonly backend: string
  /** Identity of the backend (`backendIdentity`). Empty if Gatehouse runs the task. */
  readonly identity: string
  /** The backend's own task id. */
  readonly taskId: string
  /** Name of the called tool, as clients see it. */
  readonly tool: string
  /** Name of the called tool at the backend. */
  readonly original: string
  /** Shape in which the backend describes the task. */
  readonly shape: TaskShape
  /** Time after which the id is invalid, in milliseconds since the epoch. */
  readonly notAfter: number
  /** Interval between two reads, in milliseconds. */
  readonly pollMs: number
  /** The backend's session, for a task that a client without a session created at a session-era backend. */
  readonly session?: BackendSession | undefined
}

/**
 * Applies `change` to the tool result in an outcome of `tasks/get` or `tasks/result`. Returns the outcome unchanged if
 * it contains no tool result.
 */
export async function changeTaskResult(
  method: string,
  outcome: Outcome,
  change: (outcome: Outcome) => Promise<Outcome>,
): Promise<Outcome> {
  if (method === 'tasks/result') return change(outcome)
  if (outcome.kind !== 'result' || method !== 'tasks/get') return outcome
  const envelope = new JsonObject(outcome.result)
  const member = (['result', 'error'] as const).find((name) => envelope.raw(name)?.[0] === 0x7b)
  const raw = member && envelope.raw(member)
  if (!raw) return outcome
  const before: Outcome =
    member === 'result' ? { kind: 'result', result: raw } : { kind: 'error', error: raw }
  const after = await change(before)
  if (after === before) return outcome
  const changes =
    after.kind === 'error'
      ? { status: '"failed"', result: undefined, error: after.error }
      : { status: '"completed"', error: undefined, result: after.result }
  return { kind: 'result', result: envelope.with(changes) }
}

/** Name of the `_meta` member that links a message to a task of 2025-11-25. */
export const relatedTask = 'io.modelcontextprotocol/related-task'
