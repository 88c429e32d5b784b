/** Limits of a worker pool: workers, and running, waiting and parked tasks. */

export interface PoolOptions {
  /** Plural name of the tasks, for messages. */
  readonly tasks: string
  /** Maximum number of running tasks. */
  readonly maxWorkers: number
  /** Maximum number of running tasks per caller. */
  readonly maxPerCaller: number
  /** Maximum number of queued tasks. */
  readonly maxWaiting: number
  /** Maximum number of parked tasks, in total and per caller. */
  readonly maxParked: number
  readonly maxParkedPerCaller: number
  /** Limit on the total memory of parked tasks. */
  readonly maxParkedBytes: number
  /** Number of idle workers to keep, and the time for which they are kept. */
  readonly maxIdle: number
  readonly idleMs: number
  /** Heap size of one worker, in MiB. */
  readonly heapMb: number
}
