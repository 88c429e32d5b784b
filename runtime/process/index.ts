/** Public API of the process module: worker processes that share one port, and pools of worker threads. */
export { type Handlers, type WorkerChannel } from './workers/channel.ts'
export { isWorker, type PrimaryLink, serveAsWorker } from './workers/worker.ts'
export { Workers } from './workers/workers.ts'
export type { PoolOptions } from './threads/options.ts'
export { type Lease, WorkerPool } from './threads/pool.ts'
export { type WorkerProgram, workerViolations } from './threads/worker-file.ts'
