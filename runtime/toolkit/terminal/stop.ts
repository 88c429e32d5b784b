/** How a command is asked to stop: by a signal, or, where it runs in a thread of `gatehouse dev`, by a message. */
import { constants } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { exitCode } from './output.ts'

export const stopMessage = 'stop'

/** Maps the abort signal of a command to the process signal that stopped it. */
const received = new WeakMap<AbortSignal, NodeJS.Signals>()

/** Resolves when the command is asked to stop for the first time; the second time ends it at once. */
export function stopSignal(
  stop: AbortController,
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Promise<void> {
  return new Promise((resolve) => {
    const onStop = (signal?: NodeJS.Signals): void => {
      if (stop.signal.aborted) process.exit(exitCode.failed)
      if (signal !== undefined) received.set(stop.signal, signal)
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

/**
 * Returns the exit code of a command that a signal stopped before it finished: 128 plus the signal number, as in a
 * shell.
 */
export function stoppedExitCode(stop: AbortSignal): number {
  const signal = received.get(stop)
  return signal === undefined ? exitCode.failed : 128 + constants.signals[signal]
}
