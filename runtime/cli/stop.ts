/** How a command is asked to stop: by a signal, or, where it runs in a thread of `gatehouse dev`, by a message. */
import { parentPort } from 'node:worker_threads'
import { exitCode } from './output.ts'

export const stopMessage = 'stop'

/** Resolves when the command is asked to stop for the first time; the second time ends it at once. */
export function stopSignal(
  stop: AbortController,
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Promise<void> {
  return new Promise((resolve) => {
    const onStop = (): void => {
      if (stop.signal.aborted) process.exit(exitCode.failed)
      stop.abort(new Error('stopped by a signal'))
      resolve()
    }
    for (const signal of signals) process.on(signal, onStop)
    parentPort?.on('message', (message) => {
      if (message === stopMessage) onStop()
    })
    // Listening alone keeps no thread alive.
    parentPort?.unref()
  })
}
