/**
 * The program of a worker thread. Evaluates calls one by one. The thread's `workerData` contains the installation's
 * settings.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { engineFailures } from '../../schemas/cedar/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import { makeHooks } from '../registry/hook-registry.ts'
import type { HookSettings } from '../base/settings.ts'
import { evaluate } from './evaluate.ts'
import { placeOf } from './log.ts'
import type { WorkerOutcome, WorkerTask } from './workers.ts'

const settings: HookSettings = workerData
const registry = makeHooks(settings)
const port = parentPort
let failures = 0

port?.on('message', (task: WorkerTask) => {
  const text = textOf(task)
  const outcome = outcomeOf(() => evaluate(registry, task.call, text))
  const before = failures
  failures = engineFailures()
  port.postMessage({ ...outcome, engineFailures: failures - before } satisfies WorkerOutcome)
})

/** Frees the bytes early to leave room for the text and the parsed values. */
function textOf({ body, size }: WorkerTask): string {
  const text = Buffer.from(body.buffer, 0, size).toString('utf8')
  body.buffer.transfer(0)
  return text
}

function outcomeOf(work: () => ReturnType<typeof evaluate>): Omit<WorkerOutcome, 'engineFailures'> {
  try {
    return { done: work() }
  } catch (error) {
    if (error instanceof GatehouseError)
      return { refused: { code: error.code, detail: error.message, headers: error.headers } }
    return { failed: { name: error instanceof Error ? error.name : 'unknown', place: placeOf(error) } }
  }
}
