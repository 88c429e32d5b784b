/** Public API of the workers module: several processes that serve one port, and the one that owns them. */
export { type Handlers, type WorkerChannel } from './workers/channel.ts'
export { isWorker, type PrimaryLink, serveAsWorker } from './workers/worker.ts'
export { Workers } from './workers/workers.ts'
