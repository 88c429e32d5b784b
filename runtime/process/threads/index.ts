/** Worker threads: a bounded pool that is shared fairly, and where their programs are. */
export { callerOf } from '../../vmcp/model/caller-of.ts'
export { type Lease, WorkerPool } from './pool.ts'
export type { PoolOptions } from './options.ts'
export { scriptWorker, workerViolations, workflowWorker } from './worker-file.ts'
