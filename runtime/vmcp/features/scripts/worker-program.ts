import type { WorkerProgram } from '../../../process/index.ts'

export const scriptWorker: WorkerProgram = {
  name: 'script-worker',
  source: new URL('./worker.ts', import.meta.url),
}
