/**
 * Shares event loop turns among all work that is split into steps. All of this work shares one time limit for each
 * turn, and work that has used its share waits behind other work. A client with many streams or large results therefore
 * does not make turns longer.
 */
import { nextTick } from 'node:process'
import { setImmediate } from 'node:timers'

/** Time limit in milliseconds for all of this work in one turn. */
const turnMs = 5

let turnEnd: number | undefined
const waiting: (() => void)[] = []
let isRunning = false

/** True once the time limit for this turn has been reached. */
export function turnIsOver(): boolean {
  const now = performance.now()
  if (turnEnd === undefined) {
    turnEnd = now + turnMs
    setImmediate(() => {
      turnEnd = undefined
    })
  }
  return now > turnEnd
}

/** True if work must wait for its next share. */
export function shareIsOver(): boolean {
  return waiting.length > 0 || turnIsOver()
}

/** Resolves when the caller may run one step. A step may take a few milliseconds. */
export function nextShare(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (isRunning) return
    isRunning = true
    setImmediate(share)
  })
}

function share(): void {
  turnIsOver()
  waiting.shift()?.()
  // Continue after the step and its follow-up work, both of which count toward the time limit.
  queueMicrotask(() => nextTick(continueSharing))
}

function continueSharing(): void {
  if (waiting.length === 0) isRunning = false
  else if (turnIsOver()) setImmediate(share)
  else share()
}
