/** Messages in events of a backend: which errors are counted as protocol violations. */
import t from 'tap'
import { JsonError, type Message, SseEvent } from '../../../runtime/mcp/index.ts'
import { forwardMessageIn, receiveEvent } from '../../../runtime/vmcp/backends/transport/read-message.ts'
import type { ChannelTarget } from '../../../runtime/vmcp/backends/transport/target.ts'

function eventOf(text: string): SseEvent {
  const data = Buffer.from(text)
  return new SseEvent({ id: undefined, event: undefined }, [data], data.length)
}

function notification(method: string, params: string): SseEvent {
  return eventOf(`{"jsonrpc":"2.0","method":"notifications/${method}","params":${params}}`)
}

function startReporter() {
  const noted: string[] = []
  const deviations = {
    note: (kind: string) => void noted.push(kind),
  } as unknown as ChannelTarget['deviations']
  return { noted, reporter: { deviations } }
}

for (const receive of [forwardMessageIn, receiveEvent])
  t.test(`${receive.name}: an error while a message is handled is not a violation by the backend`, (t) => {
    const { noted, reporter } = startReporter()
    for (const error of [new JsonError('from the handler', 0), new TypeError('from the handler')])
      t.throws(
        () =>
          receive(notification('message', '{"level":"info","data":1}'), reporter, () => {
            throw error
          }),
        error,
      )
    t.strictSame(noted, [])
    t.end()
  })

t.test('a notification whose params cannot be read is dropped and reported', async (t) => {
  const { noted, reporter } = startReporter()
  const received: Message[] = []
  const unreadable = [
    '{"progressToken":1,"progressToken":2}',
    '{"level":"info","LEVEL":"error"}',
    '{"_meta":{"io.modelcontextprotocol/a":1,"io.modelcontextprotocol/a":2}}',
  ]
  for (const params of unreadable)
    await forwardMessageIn(notification('message', params), reporter, (message) => received.push(message))
  t.strictSame(received, [])
  t.strictSame(
    noted,
    unreadable.map(() => 'event_unreadable'),
  )
})

t.test('a changed list is announced whatever its params contain', async (t) => {
  const { noted, reporter } = startReporter()
  const received: string[] = []
  const event = notification('tools/list_changed', '{"a":1,"a":2}')
  await forwardMessageIn(event, reporter, ({ method }) => received.push(method))
  t.strictSame(received, ['notifications/tools/list_changed'])
  t.strictSame(noted, [])
})

t.test(
  'an invalid message is skipped only on a stream that is not the response to one request',
  async (t) => {
    const { noted, reporter } = startReporter()
    await receiveEvent(eventOf('{"jsonrpc":'), reporter, () => t.fail('no message'))
    t.strictSame(noted, ['event_unreadable'])
    await t.rejects(async () =>
      forwardMessageIn(eventOf('{"jsonrpc":'), reporter, () => t.fail('no message')),
    )
    t.strictSame(noted, ['event_unreadable'])
  },
)
