/**
 * Subscriptions of stateless clients at a session-era server: their number is limited, and each ends with its client.
 */
import t from 'tap'
import type { Test } from 'tap'
import { JsonObject, type StatelessReply } from '../../../runtime/mcp/index.ts'
import type { SessionLink } from '../../../runtime/mcp/translation/session-link.ts'
import { Watchers } from '../../../runtime/mcp/translation/watchers.ts'
import { silentLog } from '../../../runtime/net/index.ts'

const server = { capabilities: new JsonObject(Buffer.from('{}')), info: '{}', instructions: undefined }

function setup(t: Test, opened: Promise<typeof server> = Promise.resolve(server)) {
  const requests: string[] = []
  const warnings: unknown[] = []
  const ended = Promise.withResolvers<string>()
  const link = {
    opened,
    ended: ended.promise,
    async request(method: string, { params }: { params: JsonObject }) {
      requests.push(`${method} ${params.text('uri') ?? ''}`)
      return { result: Buffer.from('{}') }
    },
  } as unknown as SessionLink
  const log = { ...silentLog, warn: (_message: string, fields: unknown) => void warnings.push(fields) }
  const watchers = new Watchers(() => [link], log)
  t.teardown(() => ended.resolve('closed'))
  return {
    watchers,
    requests,
    warnings,
    listen(uris: readonly string[], more: Partial<StatelessReply> = {}) {
      const params = new JsonObject(
        Buffer.from(JSON.stringify({ notifications: { resourceSubscriptions: uris } })),
      )
      const reply: StatelessReply = {
        streams: true,
        send: () => undefined,
        end: () => undefined,
        endResult: () => undefined,
        drop: () => undefined,
        gone: new AbortController().signal,
        ...more,
      }
      const meta = { clientCapabilities: Buffer.from('{}') }
      const request = { id: '1', method: 'subscriptions/listen', params, scope: '', meta }
      return watchers.listen(request as Parameters<Watchers['listen']>[0], reply, link)
    },
  }
}

t.test('concurrent requests cannot exceed the maximum number of subscriptions', async (t) => {
  const opened = Promise.withResolvers<typeof server>()
  const { listen, watchers } = setup(t, opened.promise)
  const all = Array.from({ length: 1_001 }, () => listen([]).then(() => 'ended', String))
  t.match(await Promise.race(all), /too many subscriptions/)
  opened.resolve(server)
  t.equal(watchers.size, 1_000)
})

t.test('a subscription whose acknowledgement cannot be sent is removed', async (t) => {
  const { listen, watchers, requests } = setup(t)
  const send = async (): Promise<void> => {
    throw new Error('the client is gone')
  }
  await t.rejects(listen(['file:///a'], { send }), { message: 'the client is gone' })
  t.equal(watchers.size, 0)
  t.strictSame(requests, ['resources/subscribe file:///a', 'resources/unsubscribe file:///a'])
})

t.test('a subscription is removed when the session cannot be opened', async (t) => {
  const { listen, watchers } = setup(t, Promise.reject(new Error('refused')))
  await t.rejects(listen([]), { message: 'refused' })
  t.equal(watchers.size, 0)
})

t.test('resources beyond the maximum are excluded and reported once per minute', async (t) => {
  const { listen, warnings } = setup(t)
  const uris = Array.from({ length: 103 }, (_, i) => `file:///${i}`)
  for (let i = 0; i < 2; i++) {
    const acknowledged = Promise.withResolvers<string>()
    void listen(uris, { send: (message) => acknowledged.resolve(message.toString()) })
    t.match(await acknowledged.promise, '"file:///99"]')
  }
  t.strictSame(warnings, [{ watched: 100, left_out: 3 }])
})
