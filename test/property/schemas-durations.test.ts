/** Tests durations: parsing reverses formatting, and parsing either returns a value or rejects the text. */
import * as fc from 'fast-check'
import t from 'tap'
import { formatDuration, GatehouseError, parseDuration } from '../../schemas/index.ts'

const form = /^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$/

/** Range of a signed 64-bit number of nanoseconds. */
const longestHours = 2_562_047
const hours: Readonly<Record<string, number>> = {
  ns: 1 / 3.6e12,
  us: 1 / 3.6e9,
  µs: 1 / 3.6e9,
  ms: 1 / 3.6e6,
  s: 1 / 3600,
  m: 1 / 60,
  h: 1,
}

function hoursOf(text: string): number {
  const groups = text.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h)/g)
  return [...groups].reduce((sum, [, count, unit = '']) => sum + Number(count) * (hours[unit] ?? 0), 0)
}

await t.test('durations: parseDuration reads the output of formatDuration', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 9_000_000_000_000 }), (milliseconds) => {
      const text = formatDuration(milliseconds)
      return form.test(text) && text.length <= 64 && parseDuration(text) === milliseconds
    }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (nanoseconds) => {
      const milliseconds = nanoseconds / 1e6
      return Math.abs(parseDuration(formatDuration(milliseconds)) - milliseconds) < 1e-9
    }),
  )
  t.pass()
})

await t.test('durations: parseDuration accepts exactly the pattern of the schema', async (t) => {
  const unit = fc.constantFrom('ns', 'us', 'µs', 'ms', 's', 'm', 'h', 'd', '')
  const amount = fc.oneof(fc.nat(9999).map(String), fc.constantFrom('1.5', '.5', '5.', '-1', '1e2', ''))
  const like = fc
    .array(
      fc.tuple(amount, unit).map(([a, u]) => a + u),
      { maxLength: 5 },
    )
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(like, fc.string()), (text) => {
      try {
        const milliseconds = parseDuration(text)
        return form.test(text) && milliseconds >= 0 && Number.isFinite(milliseconds)
      } catch (error) {
        return error instanceof GatehouseError && (!form.test(text) || hoursOf(text) > longestHours)
      }
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

await t.test('durations: concatenated durations add up', async (t) => {
  const ms = fc.integer({ min: 0, max: 1_000_000_000 })
  fc.assert(fc.property(ms, ms, (a, b) => parseDuration(formatDuration(a) + formatDuration(b)) === a + b))
  t.pass()
})
