import type { WorkerProgram } from '../../../process/index.ts'

export const workflowWorker: WorkerProgram = {
  name: 'workflow-worker',
  source: new URL('./evaluation/worker.ts', import.meta.url),
}
