/** Writes locks in a worker thread, one at a time, so that the thread that serves requests is not blocked. */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { LockTask, WrittenLock } from './lock-file.ts'

/** Time limit, which is longer than it takes to write the largest lock. */
const deadlineMs = 60_000
/** Heap size, which is sufficient for a lock of at most 8 MiB. */
const heapMb = 512

export type WriterOutcome =
  | { readonly kind: 'done'; readonly lock: WrittenLock }
  | { readonly kind: 'failed'; readonly message: string }

let last: Promise<unknown> = Promise.resolve()

/** Rejects with an error that contains the reason. */
export function writeLockInThread(task: LockTask): Promise<WrittenLock> {
  const written = last.then(() => run(task))
  last = written.catch(() => {})
  return written
}

async function run(task: LockTask): Promise<WrittenLock> {
  const thread = new Worker(programFile(), {
    workerData: task,
    argv: [],
    execArgv: [],
    env: {},
    name: 'lock-worker',
    resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 16 },
  })
  thread.unref()
  const { promise, resolve, reject } = Promise.withResolvers<WrittenLock>()
  const deadline = setTimeout(() => reject(new Error('writing the lock took too long')), deadlineMs)
  thread.on('message', (outcome: WriterOutcome) => {
    if (outcome.kind === 'done') resolve(outcome.lock)
    else reject(new Error(outcome.message))
  })
  thread.on('error', (cause: NodeJS.ErrnoException) =>
    reject(
      cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? new Error('the definitions are too large for a lock', { cause })
        : new Error(`cannot write the lock: ${cause.message}`, { cause }),
    ),
  )
  thread.on('exit', () => reject(new Error('cannot write the lock: the thread exited')))
  try {
    return await promise
  } finally {
    clearTimeout(deadline)
    await thread.terminate()
  }
}

/** In a build, the worker file is next to the program. */
function programFile(): URL {
  const isSource = extname(fileURLToPath(import.meta.url)) === '.ts'
  return new URL(isSource ? './worker.ts' : './lock-worker.js', import.meta.url)
}
