/** Durations: parsing, errors and formatting. */
import t from 'tap'
import { formatDuration, GatehouseError, parseDuration } from '../../../schemas/index.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.shape.duration')

await t.test('parseDuration: every unit, in milliseconds', async (t) => {
  const cases: readonly (readonly [string, number])[] = [
    ['5s', 5000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['100ms', 100],
    ['1m1ms', 60_001],
    ['7us', 0.007],
    ['7µs', 0.007],
    ['250ns', 0.000_25],
    ['0s', 0],
    ['1s1s', 2000],
    ['168h', 604_800_000],
  ]
  for (const [text, milliseconds] of cases) t.equal(parseDuration(text), milliseconds, text)
})

await t.test('parseDuration: rejects invalid durations', async (t) => {
  const wrong = [
    '',
    ' ',
    '5',
    '5 s',
    ' 5s',
    '5s ',
    '-5s',
    '+5s',
    '.5s',
    '5.s',
    '1d',
    '1w',
    '5S',
    '5sec',
    '1h 30m',
    'h',
    '1e3s',
    '5s\n',
    '١s',
  ]
  for (const text of wrong)
    t.throws(
      () => parseDuration(text),
      { name: 'GatehouseError', code: 'INVALID_CONFIG' },
      JSON.stringify(text),
    )
  t.throws(() => parseDuration('9999999999h'), GatehouseError, 'longer than a 64-bit count of nanoseconds')
})

await t.test('parseDuration: the error describes the format and does not repeat the text', async (t) => {
  t.throws(() => parseDuration('hunter2'), {
    message:
      'expected a duration such as 30s or 1h30m (units ns, us, µs, ms, s, m, h), found a string of 7 characters',
  })
})

await t.test('formatDuration: returns the shortest usual form', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [1, '1ms'],
    [1500, '1s500ms'],
    [60_000, '1m'],
    [5_400_000, '1h30m'],
    [604_800_000, '168h'],
    [0.007, '7us'],
    [1.000_25, '1ms250ns'],
  ]
  for (const [milliseconds, text] of cases) t.equal(formatDuration(milliseconds), text, text)
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e15])
    t.throws(() => formatDuration(wrong), RangeError)
})
