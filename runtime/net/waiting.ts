/** Waiting that a signal can end: for a promise, or for some time. */

/** Waits for a promise no longer than the signal allows; then rejects with the signal's reason. The work goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  if (signal.aborted) {
    // Nobody waits any more, so nobody is to be surprised by how it ends.
    promise.catch(() => {})
    return Promise.reject(reasonOf(signal))
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Waits, unless the signal fires first; then it rejects with the signal's reason. The timer never keeps a process alive. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(reasonOf(signal))
      return
    }
    function onAbort(): void {
      clearTimeout(timer)
      reject(reasonOf(signal))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    timer.unref()
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/**
 * Waits for `work` for at most `ms`, then goes on with what `late` returns or throws. The work goes on too, and the timer
 * keeps the process alive.
 */
export async function atMost<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    return await Promise.race([work, elapsed.then(late)])
  } finally {
    clearTimeout(timer)
  }
}

/** Why a signal fired. */
export function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error('cancelled')
}
