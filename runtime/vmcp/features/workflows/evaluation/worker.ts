/**
 * The worker thread that evaluates large tasks, one at a time. The thread communicates only through messages.
 *
 * This file is bundled separately from the program. See workers/worker-file.ts.
 */
import { parentPort } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import type { CompositeTool } from '../../../../../schemas/index.ts'
import { evaluate, matchSchemas } from './evaluate.ts'
import { compileProgram, type WorkflowProgram } from './program.ts'
import type { ToEvaluationWorker } from './tasks.ts'

/** Programs of recently used workflows. */
const programs = new LRUCache<string, WorkflowProgram>({ max: 20 })

function programOf(source: string): WorkflowProgram {
  const known = programs.get(source)
  if (known) return known
  const definition: CompositeTool = JSON.parse(source)
  const made = compileProgram(definition)
  programs.set(source, made)
  return made
}

parentPort?.on('message', (message: ToEvaluationWorker) => {
  const made =
    'schemas' in message
      ? matchSchemas(message, message.maxWork)
      : evaluate(programOf(message.source), message.state, message.task, message.maxWork)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
  parentPort?.postMessage(made)
})
