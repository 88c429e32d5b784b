/** The settings of tasks. Source: docs/guides/tasks.md. */
import { type Extensions, timerMs } from '../../../../schemas/index.ts'

export interface TaskSettings {
  readonly maxPerCaller: number
  readonly max: number
  /** Maximum lifetime of a task, in milliseconds. */
  readonly maxTtlMs: number
  /** Interval between two reads of a task whose backend suggests no interval, in milliseconds. */
  readonly pollMs: number
  readonly runAsTask: ReadonlySet<'workflows' | 'scripts' | 'optionalTools'>
}

/** Settings of a server on which no task can be created. */
export const noTasks: TaskSettings = {
  maxPerCaller: 0,
  max: 0,
  maxTtlMs: 1,
  pollMs: 1_000,
  runAsTask: new Set(),
}

/** Returns undefined if tasks are off. */
export function taskSettings(extensions: Extensions | undefined): TaskSettings | undefined {
  const tasks = extensions?.tasks
  if (!tasks?.enabled) return undefined
  return {
    maxPerCaller: tasks.maxTasksPerCaller,
    max: tasks.maxTasks,
    maxTtlMs: timerMs(tasks.maxTtl),
    pollMs: timerMs(tasks.pollInterval),
    runAsTask: new Set(tasks.runAsTask),
  }
}
