/** The time that a server has been starting: exact on the screen, and in a few steps when each change is a line. */
import t from 'tap'
import { roundSecondsSince, secondsSince } from '../../../../runtime/toolkit/local/screen/lines.ts'

t.test('seconds: exact, and rounded down to steps that double', async (t) => {
  const steps: readonly (readonly [ms: number, exact: number, rounded: number])[] = [
    [-5_000, 0, 0],
    [4_999, 4, 0],
    [5_000, 5, 5],
    [9_999, 9, 5],
    [10_000, 10, 10],
    [39_000, 39, 20],
    [40_000, 40, 40],
    [3_600_000, 3_600, 2_560],
  ]
  for (const [ms, exact, rounded] of steps)
    t.strictSame([secondsSince(0, ms), roundSecondsSince(0, ms)], [exact, rounded], `${ms} ms`)
})
