/**
 * Shares the turns of the event loop out among all work that takes many of them: a turn has so much time for all of it
 * together, and whoever has had a share is behind everybody else who waits. What has many streams or large results at once
 * takes no longer turns than what has one.
 */
import { nextTick } from 'node:process'
import { setImmediate } from 'node:timers'

/** For all work of one turn together. */
const turnMs = 5

let turnEnd: number | undefined
const waiting: (() => void)[] = []
let isRunning = false

/** True when work in steps has had its time of this turn. */
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

/** True when work that has done a step must wait for its next share. */
export function shareIsOver(): boolean {
  return waiting.length > 0 || turnIsOver()
}

/** Resolves when it is the caller's turn, for one step of some milliseconds at most. */
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
  // Once the step has been done, and what follows from it: all of this counts.
  queueMicrotask(() => nextTick(goOn))
}

function goOn(): void {
  if (waiting.length === 0) isRunning = false
  else if (turnIsOver()) setImmediate(share)
  else share()
}
