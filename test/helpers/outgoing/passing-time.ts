import type { Test } from 'tap'

/** Replaces `Date.now` before the parts under test are made. Returns a function that lets time pass. */
export function startPassingTime(t: Test): (ms: number) => void {
  const { now } = Date
  let passed = 0
  Date.now = () => now() + passed
  t.teardown(() => {
    Date.now = now
  })
  return (ms) => {
    passed += ms
  }
}
