/** Tool arguments on spans: redacted and bounded. */
import t from 'tap'
import { describeArguments } from '../../../runtime/observe/telemetry/arguments.ts'

function describe(value: unknown): string {
  return describeArguments(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))
}

t.test('span arguments: names and values in order, containers by size', async (t) => {
  t.equal(
    describe({ owner: 'a', count: 3, deep: { x: 1, y: 2 }, list: [1], on: true, none: null }),
    'owner=a, count=3, deep={2 members}, list=[1 items], on=true, none=null',
  )
})

t.test(
  'span arguments: values under sensitive names and texts that look like credentials are redacted',
  async (t) => {
    for (const name of [
      'password',
      'apiKey',
      'AUTH_header',
      'credentials',
      'privateThing',
      'sessionToken',
      'mySecret',
    ])
      t.equal(describe({ [name]: 's3cr3t' }), `${name}=[redacted]`)
    t.notMatch(describe({ note: 'Bearer s3cr3t-s3cr3t', url: 'https://u:s3cr3t@h/?s3cr3t' }), /s3cr3t/)
  },
)

t.test('span arguments: at most 100 characters per value, and 200 in total', async (t) => {
  t.equal(describe({ a: 'x'.repeat(500) }).length, 'a='.length + 100)
  t.equal(
    describe(Object.fromEntries(Array.from({ length: 90 }, (_v, i) => [`n${i}`, 'x'.repeat(90)]))).length,
    200,
  )
})

t.test('span arguments: huge or malformed arguments are not parsed', async (t) => {
  t.equal(describe({ a: 'x'.repeat(70_000) }), '[70008 bytes]')
  t.equal(describe('{'), '[malformed]')
  t.equal(describe('"a"'), '[malformed]')
  t.equal(describe('null'), '[malformed]')
})
