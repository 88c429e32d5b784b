/** How many workers a pool has, and how many tasks run, wait and are parked. */

export interface PoolOptions {
  /** What the tasks are, in the plural, for messages. */
  readonly tasks: string
  /** Tasks that run at a time. */
  readonly maxWorkers: number
  /** Of which one caller gets at most so many. */
  readonly maxPerCaller: number
  /** How many tasks may stand in the queue. */
  readonly maxWaiting: number
  /** Tasks that may be parked, and those of one caller among them. */
  readonly maxParked: number
  readonly maxParkedPerCaller: number
  /** What parked tasks may hold together. */
  readonly maxParkedBytes: number
  /** Idle workers that stay for the next task, and for how long. */
  readonly maxIdle: number
  readonly idleMs: number
  /** Heap of one worker, in MiB. */
  readonly heapMb: number
}
