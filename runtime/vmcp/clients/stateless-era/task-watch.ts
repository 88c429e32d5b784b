/**
 * Watches tasks for a `subscriptions/listen` stream. Reads each task at its poll interval, with every check of a read by
 * the client, and reports changes. Backends need not support notifications.
 * Source: ext-tasks, "Task Status Notifications".
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import { pause } from '../../../net/index.ts'
import { isTerminal } from '../../features/tasks/index.ts'
import type { OperationClient } from '../../model/session.ts'
import type { Outcome } from '../../model/outcome.ts'

/** Maximum number of tasks for each stream. */
export const maxWatchedTasks = 20
/** Maximum number of streams that watch the same task, because each stream reads the task. */
export const maxWatchersPerTask = 3
/** Interval after the first failed read, in milliseconds. The interval doubles with each further failure. */
const retryMs = 5_000
const maxRetryMs = 60_000

export type ReadTaskState = (client: OperationClient, taskId: string, signal: AbortSignal) => Promise<Outcome>

/**
 * Watches one task until it ends, its id is no longer valid, or `signal` fires. Retries failed reads, because backends
 * and policies may recover. Never rejects.
 */
export async function watchTask(
  read: (signal: AbortSignal) => Promise<Outcome>,
  signal: AbortSignal,
  onChange: (task: JsonObject) => void,
): Promise<void> {
  let seen: string | undefined
  let failures = 0
  while (!signal.aborted) {
    let waitMs = Math.min(retryMs * 2 ** failures, maxRetryMs)
    try {
      const outcome = await read(signal)
      if (outcome.kind !== 'result') throw new Error('the task cannot be read')
      const task = new JsonObject(outcome.result)
      const state = JSON.stringify([
        task.text('status'),
        task.text('lastUpdatedAt'),
        task.text('statusMessage'),
      ])
      if (seen !== state) onChange(task)
      seen = state
      failures = 0
      if (isTerminal(task.text('status'))) return
      const pollMs = task.value('pollIntervalMs')
      if (typeof pollMs === 'number') waitMs = pollMs
    } catch (error) {
      if (error instanceof GatehouseError && error.code === 'INVALID_PARAMS') return
      failures++
    }
    await pause(waitMs, signal).catch(() => {})
  }
}
