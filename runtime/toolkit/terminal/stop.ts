/** Handles stop requests for a command: signals, or a message when the command runs in a thread of `gatehouse dev`. */
import { constants } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { exitCode } from './output.ts'

export const stopMessage = 'stop'

/** Maps a command's abort signal to the process signal that stopped it. */
const received = new WeakMap<AbortSignal, NodeJS.Signals>()

/** Resolves at the first request to stop. A second request ends the process immediately. */
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
    // The message listener must not keep the thread alive.
    parentPort?.unref()
  })
}

/**
 * Returns the exit code for a command that a signal stopped before it finished: 128 plus the signal number, as in a
 * shell.
 */
export function stoppedExitCode(stop: AbortSignal): number {
  const signal = received.get(stop)
  return signal === undefined ? exitCode.failed : 128 + constants.signals[signal]
}
