/**
 * Watches tasks for a `subscriptions/listen` stream. Reads each task at its poll interval, with every check of a read by
 * the client, and reports changes. Backends need not support notifications.
 * Source: ext-tasks, "Task Status Notifications".
 */
import { JsonObject } from '../../../mcp/index.ts'
import { pause } from '../../../net/index.ts'
import { isTerminal } from '../../features/tasks/index.ts'
import type { OperationClient } from '../../model/session.ts'
import type { Outcome } from '../../model/outcome.ts'

/** Maximum number of tasks for each stream. */
export const maxWatchedTasks = 20
/** Interval after a failed read, in milliseconds, and the number of failures after which the task is not watched. */
const retryMs = 5_000
const maxFailures = 5

export type ReadTaskState = (client: OperationClient, taskId: string, signal: AbortSignal) => Promise<Outcome>

/** Watches one task until it ends or `signal` fires. Never rejects. */
export async function watchTask(
  read: (signal: AbortSignal) => Promise<Outcome>,
  signal: AbortSignal,
  onChange: (task: JsonObject) => void,
): Promise<void> {
  let seen: string | undefined
  let failures = 0
  while (!signal.aborted && failures < maxFailures) {
    let waitMs = retryMs
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
    } catch {
      failures++
    }
    await pause(waitMs, signal).catch(() => {})
  }
}
