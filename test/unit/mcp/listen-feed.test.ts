/** Subscriptions at a stateless server: a feed reopens one that the server ends, and reports when it gives up. */
import t from 'tap'
import type { Test } from 'tap'
import { type Message, scanMessage } from '../../../runtime/mcp/index.ts'
import { ListenFeed } from '../../../runtime/mcp/translation/listen-feed.ts'
import { LinkRequester } from '../../../runtime/mcp/translation/requester.ts'
import { silentLog } from '../../../runtime/net/index.ts'

/**
 * Starts a feed. `onListen` handles each of the feed's `subscriptions/listen` requests; `respond` sends a server
 * message.
 */
function setup(t: Test, onListen: (id: string, respond: (message: object) => void, count: number) => void) {
  // A feed's pauses do not keep the process alive.
  const alive = setInterval(() => undefined, 1_000)
  const warned = Promise.withResolvers<string>()
  let count = 0
  const requester = new LinkRequester((bytes) => {
    const { id = '', method } = scanMessage(bytes)
    if (method === 'subscriptions/listen') queueMicrotask(() => onListen(id, respond, ++count))
  })
  const respond = (message: object): void => {
    const received: Message = scanMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })))
    if (!requester.take(received)) feed.take(received)
  }
  const log = { ...silentLog, warn: (message: string) => warned.resolve(message) }
  const feed = new ListenFeed(requester, { meta: () => '{}', log, firstPauseMs: 1 })
  t.teardown(() => {
    clearInterval(alive)
    feed.close()
  })
  return { feed, warned: warned.promise, count: () => count }
}

function acknowledged(id: string): object {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': Number(id) }
  const params = { _meta, notifications: { toolsListChanged: true } }
  return { method: 'notifications/subscriptions/acknowledged', params }
}

const refused = { code: -32603, message: 'not now' }

for (const [end, name] of [
  [{ error: refused }, 'an error'],
  [{ result: {} }, 'a result'],
] as const) {
  t.test(`a subscription that the server ends with ${name} is reopened`, async (t) => {
    const reopened = Promise.withResolvers<void>()
    const { feed } = setup(t, (id, respond, count) => {
      respond(acknowledged(id))
      if (count === 1) respond({ id: Number(id), ...end })
      else reopened.resolve()
    })
    feed.wantLists(['tools'])
    await reopened.promise
    t.pass('the second subscription was opened')
  })
}

t.test(
  'a server that rejects every subscription gets seven requests, and giving up is reported',
  async (t) => {
    const { feed, warned, count } = setup(t, (id, respond) => respond({ id: Number(id), error: refused }))
    feed.wantLists(['tools'])
    t.match(await warned, /rejects subscriptions/)
    t.equal(count(), 7)
  },
)
