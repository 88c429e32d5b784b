import type { Test } from 'tap'

/** Replaces `Date.now`. Call this before creating the parts under test. Returns a function that advances the time. */
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
