/** Worker thread that writes one lock. */
import { parentPort, workerData } from 'node:worker_threads'
import { type LockTask, writeLock } from './lock-file.ts'
import type { WriterOutcome } from './writer.ts'

const port = parentPort
if (!port) throw new Error('this is a worker thread')
port.postMessage(outcomeOf(workerData as LockTask))

function outcomeOf(task: LockTask): WriterOutcome {
  try {
    return { kind: 'done', lock: writeLock(task) }
  } catch (error) {
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}
