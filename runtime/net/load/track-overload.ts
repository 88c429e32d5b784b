/** A change in the state of the overload protection. */
export interface Overload {
  /** False once the overload has ended. */
  readonly isOn: boolean
  /** Number of requests rejected since the overload began. */
  readonly rejected: number
}

/** Runs the work once after `ms`, without keeping the process alive. */
type After = (ms: number, work: () => void) => unknown

/** Time without a rejection after which the overload ends. */
const quietMs = 5_000

/**
 * Reports when a server starts rejecting requests, and when the rejections have stopped for a while. Returns a function
 * to call for each rejection.
 */
export function trackOverload(report: (overload: Overload) => void, after: After = unrefTimer): () => void {
  let rejected = 0
  let checked = 0

  function check(): void {
    if (rejected > checked) {
      checked = rejected
      after(quietMs, check)
      return
    }
    report({ isOn: false, rejected })
    rejected = 0
    checked = 0
  }

  return function noteRejection() {
    if (++rejected > 1) return
    report({ isOn: true, rejected })
    after(quietMs, check)
  }
}

function unrefTimer(ms: number, work: () => void): void {
  setTimeout(work, ms).unref()
}
