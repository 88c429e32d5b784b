import fc from 'fast-check'
import t from 'tap'
import {
  encodeEvent,
  type EventSourceMessage,
  keepAliveComment,
  sseReader,
} from '../../../runtime/mcp/index.ts'

function read(bytes: Buffer, size: number): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  const reader = sseReader(1_000_000, (event) => events.push(event))
  for (let i = 0; i < bytes.length; i += size) reader.push(bytes.subarray(i, i + size))
  return events
}

t.test('server-sent events: what is written is read, in chunks of any size', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 7 }), (text, size) => {
      const clean = Buffer.from(text).toString()
      const [event, ...more] = read(encodeEvent(Buffer.from(clean)), size)
      return more.length === 0 && (event?.data ?? '') === clean.replaceAll(/\r\n|\r/g, '\n')
    }),
  )
})

t.test('server-sent events: data cannot end its event and begin another', async (t) => {
  for (const breakOut of ['\n\n', '\r\r', '\r\n\r\n']) {
    const events = read(encodeEvent(Buffer.from(`{"a":1}${breakOut}data: {"forged":true}`)), 3)
    t.equal(events.length, 1)
    t.match(events[0]?.data, /^\{"a":1\}/)
  }
})

t.test('server-sent events: id, event name and comments', async (t) => {
  const bytes = Buffer.concat([
    keepAliveComment,
    encodeEvent(Buffer.from('/x'), { event: 'endpoint', id: '7' }),
  ])
  t.same(read(bytes, 100), [{ event: 'endpoint', id: '7', data: '/x' }])
})

t.test('server-sent events: an endless event is refused', async (t) => {
  const reader = sseReader(64, () => t.fail('no event is complete'))
  t.throws(() => {
    for (let i = 0; i < 10; i++) reader.push(Buffer.from('data: 0123456789abcdef\n'))
  }, RangeError)
})
