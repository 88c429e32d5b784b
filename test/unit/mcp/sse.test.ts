import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import t from 'tap'
import { encodeEvent, eventParts, keepAliveComment, sseReader } from '../../../runtime/mcp/index.ts'

interface Read {
  readonly id?: string | undefined
  readonly event?: string | undefined
  readonly data: string
}

function inChunks(bytes: Buffer, size: number): Buffer[] {
  const count = Math.ceil(bytes.length / size)
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

function textOf(data: Buffer | Promise<Buffer>): string {
  if (data instanceof Promise) throw new Error('the event is large')
  return data.toString()
}

function read(bytes: Buffer, size: number, onRetry?: (ms: number) => void): Read[] {
  const events: Read[] = []
  const reader = sseReader(
    1_000_000,
    (event) => events.push({ id: event.id, event: event.event, data: textOf(event.data()) }),
    onRetry,
  )
  for (const chunk of inChunks(bytes, size)) reader.push(chunk)
  return events
}

const whiteSpace = fc.constantFrom(' ', '\n', '\r', '\r\n', '\t')

t.test('server-sent events: written JSON is read back, in chunks of any size', async () => {
  fc.assert(
    fc.property(fc.jsonValue(), whiteSpace, fc.integer({ min: 1, max: 7 }), (value, blank, size) => {
      const text = `${blank}${JSON.stringify(value, undefined, 2).replaceAll(/\n(?= )/g, blank)}${blank}`
      const [event, ...more] = read(encodeEvent(Buffer.from(text)), size)
      return more.length === 0 && JSON.stringify(JSON.parse(event?.data ?? '')) === JSON.stringify(value)
    }),
  )
})

/** Generates the parts of an event stream's lines. */
const piece = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('\n', '\n\n', '\r', '\r\n', ':', ': ', ' ') },
  { weight: 5, arbitrary: fc.constantFrom('data:', 'data', 'id:', 'event:', 'retry:', 'datas:', 'x') },
  { weight: 1, arbitrary: fc.constantFrom('\0', '12', 'é', '😀', '\uFEFF', 'a'.repeat(5_000)) },
)

t.test('server-sent events: events are parsed like in the reference parser', async (t) => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.integer({ min: 1, max: 9 }), (pieces, size) => {
      const text = `${pieces.join('')}\n\n`
      const expected: unknown[] = []
      createParser({
        onEvent: ({ id, event, data }) => expected.push({ id, event, data }),
        onRetry: (ms) => expected.push(ms),
      }).feed(text)
      const retries: unknown[] = []
      const got = read(Buffer.from(text), size, (ms) => retries.push(ms))
      t.strictSame(
        got,
        expected.filter((one) => typeof one === 'object'),
      )
      t.strictSame(
        retries,
        expected.filter((one) => typeof one === 'number'),
      )
    }),
  )
})

t.test('server-sent events: data cannot end its event and start another', async (t) => {
  for (const breakOut of ['\n\n', '\r\r', '\r\n\r\n']) {
    const forged = Buffer.from(`{"a":1}${breakOut}data: {"forged":true}`)
    for (const bytes of [encodeEvent(forged), Buffer.concat(eventParts([forged, forged], { id: '1' }))]) {
      const events = read(bytes, 3)
      t.equal(events.length, 1)
      t.match(events[0]?.data, /^\{"a":1\}/)
    }
  }
})

t.test('server-sent events: id, event name and comments', async (t) => {
  const bytes = Buffer.concat([
    keepAliveComment,
    encodeEvent(Buffer.from('/x'), { event: 'endpoint', id: '7' }),
  ])
  t.same(read(bytes, 100), [{ event: 'endpoint', id: '7', data: '/x' }])
})

t.test('server-sent events: large data is delivered later, unchanged', async (t) => {
  const lines = Array.from({ length: 100_000 }, (_, i) => `line ${i}`)
  const long = 'x'.repeat(400_000)
  const arrived: (Buffer | Promise<Buffer>)[] = []
  const reader = sseReader(10_000_000, (event) => arrived.push(event.data()))
  const bytes = Buffer.from(`data: ${lines.join('\ndata:')}\n\ndata:${long}\n\ndata:{}\n\n`)
  for (const chunk of inChunks(bytes, 65_536)) reader.push(chunk)
  t.ok(arrived[0] instanceof Promise)
  t.equal((await arrived[0])?.toString(), lines.join('\n'))
  t.equal((await arrived[1])?.toString(), long)
  t.equal((await arrived[2])?.toString(), '{}')
})

t.test('server-sent events: invalid UTF-8 is replaced', async (t) => {
  for (const length of [3, 300_000, 3_000_000]) {
    const bytes = Buffer.concat([Buffer.alloc(length, '\u{1F600}'), Buffer.from([0xff]), Buffer.from('é')])
    const arrived: (Buffer | Promise<Buffer>)[] = []
    const reader = sseReader(10_000_000, (event) => arrived.push(event.data()))
    for (const part of [Buffer.from('data: '), bytes, Buffer.from('\n\n')]) reader.push(part)
    t.ok((await arrived[0])?.equals(Buffer.from(bytes.toString())))
  }
})

t.test('server-sent events: an unlimited event is rejected', async (t) => {
  for (const line of ['data: 0123456789abcdef\n', 'data:\n', `id: ${'x'.repeat(100)}`, 'event:xxxxxxx']) {
    const reader = sseReader(64, () => t.fail('no event is complete'))
    t.throws(() => {
      for (let i = 0; i < 10_000; i++) reader.push(Buffer.from(line))
    }, RangeError)
    t.ok(reader.overflowed)
  }
})

t.test('server-sent events: a comment may have any length', async (t) => {
  const reader = sseReader(64, () => t.fail('there is no event'))
  for (let i = 0; i < 1_000; i++) reader.push(Buffer.from(': 0123456789abcdef'))
  t.notOk(reader.overflowed)
})
