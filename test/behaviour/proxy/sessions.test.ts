/** Sessions through the proxy: their owners, and recovery when the target loses one. */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import {
  fakeAuthenticator,
  json,
  rpc,
  startRig,
  startUpstream,
  type Upstream,
} from '../../helpers/proxy/rig.ts'

/** A session-era server that can forget its sessions. */
async function startSessionServer(): Promise<Upstream & { forget(): void; readonly opened: () => number }> {
  let live = new Set<string>()
  let opened = 0
  const upstream = await startUpstream((seen, res) => {
    const id = seen.headers['mcp-session-id']
    const message: { id?: unknown; method?: string } = seen.body === '' ? {} : JSON.parse(seen.body)
    if (message.method === 'initialize') {
      const fresh = `session-${++opened}`
      live.add(fresh)
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': fresh })
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { protocolVersion: '2025-11-25' } }))
      return
    }
    if (typeof id !== 'string' || !live.has(id)) {
      res.writeHead(404, { 'Content-Type': 'application/json' })
      res.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"gone"}}')
      return
    }
    if (seen.method === 'DELETE') {
      live.delete(id)
      res.writeHead(204).end()
    } else if (message.id === undefined) res.writeHead(202).end()
    else {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': id })
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { session: id } }))
    }
  })
  return Object.assign(upstream, {
    forget() {
      live = new Set()
    },
    opened: () => opened,
  })
}

/** Uses the bearer token as the caller's name. */
const byToken = fakeAuthenticator((exchange) => {
  const subject = exchange.req.headers.authorization?.slice(7) ?? ''
  exchange.caller = makeCaller({ issuer: 'https://issuer.example', subject, claims: {} })
})

const initialize = rpc(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'c', version: '1' },
})

async function post(url: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body })
}

await t.test('session: a forgotten session is reopened, and the client keeps its id', async (t) => {
  const upstream = await startSessionServer()
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const opened = await post(rig.url, initialize)
  const id = opened.headers.get('mcp-session-id') ?? ''
  t.equal(id, 'session-1')
  upstream.forget()

  const responses = await Promise.all(
    ['a', 'b', 'c'].map((n) =>
      post(rig.url, rpc(n), { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }),
    ),
  )
  for (const response of responses) {
    t.equal(response.status, 200)
    t.equal(response.headers.get('mcp-session-id'), id, 'the client sees its own session id')
    t.match(await response.json(), { result: { session: 'session-2' } })
  }
  t.equal(upstream.opened(), 2, 'concurrent requests share one recovery')
  const again = upstream.seen.filter((seen) => seen.body.includes('"initialize"'))[1]
  t.equal(again?.body, initialize, 'the same initialize message is sent')
  t.equal(again?.headers['mcp-session-id'], undefined)
  const confirmed = upstream.seen.find((seen) => seen.body.includes('notifications/initialized'))
  t.match(confirmed?.headers, { 'mcp-session-id': 'session-2', 'mcp-protocol-version': '2025-11-25' })
})

await t.test(
  'session: after a recovery the new id is used directly, and DELETE ends the session',
  async (t) => {
    const upstream = await startSessionServer()
    const rig = await startRig(upstream.url)
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))
    const id = (await post(rig.url, initialize)).headers.get('mcp-session-id') ?? ''
    upstream.forget()
    await post(rig.url, rpc(1), { 'mcp-session-id': id })
    const before = upstream.seen.length
    t.equal((await post(rig.url, rpc(2), { 'mcp-session-id': id })).status, 200)
    t.equal(upstream.seen.length, before + 1)
    const ended = await fetch(`${rig.url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': id } })
    t.equal(ended.status, 204)
    t.equal(upstream.seen.at(-1)?.headers['mcp-session-id'], 'session-2')
  },
)

await t.test(
  'session: if the target cannot reopen it, the client gets 404 with the request’s id',
  async (t) => {
    let refuse = false
    const upstream = await startUpstream((seen, res) => {
      if (seen.body.includes('"initialize"') && !refuse) {
        res.writeHead(200, { 'Mcp-Session-Id': 'one', 'Content-Type': 'application/json' })
        res.end('{"jsonrpc":"2.0","id":0,"result":{}}')
      } else res.writeHead(404).end('gone')
    })
    const rig = await startRig(upstream.url)
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))
    await post(rig.url, initialize)
    refuse = true
    const response = await post(rig.url, rpc('x'), { 'mcp-session-id': 'one' })
    t.equal(response.status, 404)
    t.same(await response.json(), {
      jsonrpc: '2.0',
      id: 'x',
      error: { code: -32001, message: 'Session not found' },
    })
  },
)

await t.test('session: without authentication, unknown ids are forwarded to the target', async (t) => {
  const upstream = await startUpstream((seen, res) => res.end(String(seen.headers['mcp-session-id'])))
  const rig = await startRig(upstream.url)
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await post(rig.url, rpc(1), { 'mcp-session-id': 'from-before-a-restart' })
  t.equal(await response.text(), 'from-before-a-restart')
})

await t.test('session: with authentication, it belongs to the caller who opened it', async (t) => {
  const upstream = await startSessionServer()
  const rig = await startRig(upstream.url, { incoming: () => byToken })
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const alice = { authorization: 'Bearer alice' }
  const id = (await post(rig.url, initialize, alice)).headers.get('mcp-session-id') ?? ''
  t.equal((await post(rig.url, rpc(1), { ...alice, 'mcp-session-id': id })).status, 200)

  const before = upstream.seen.length
  const stolen = await post(rig.url, rpc(12), { authorization: 'Bearer mallory', 'mcp-session-id': id })
  t.equal(stolen.status, 404)
  t.same(await stolen.json(), {
    jsonrpc: '2.0',
    id: 12,
    error: { code: -32001, message: 'Session not found' },
  })
  const stream = await fetch(`${rig.url}/mcp`, {
    headers: { authorization: 'Bearer mallory', 'mcp-session-id': id },
  })
  t.equal(stream.status, 404)
  t.same(
    await stream.json(),
    { jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' } },
    'no id key',
  )
  const odd = await fetch(`${rig.url}/%6dcp`, {
    method: 'DELETE',
    headers: { authorization: 'Bearer mallory', 'mcp-session-id': id },
  })
  t.equal(odd.status, 404, 'another spelling of the path has no effect')
  t.equal(upstream.seen.length, before, 'the target got no request')
  t.equal((await post(rig.url, rpc(2), { ...alice, 'mcp-session-id': id })).status, 200)
})

await t.test('session: initialize never carries an old session id', async (t) => {
  const upstream = await startSessionServer()
  const rig = await startRig(upstream.url, { incoming: () => byToken })
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const response = await post(rig.url, initialize, { authorization: 'Bearer a', 'mcp-session-id': 'old' })
  t.equal(response.status, 200)
  t.equal(upstream.seen[0]?.headers['mcp-session-id'], undefined)
  t.equal(upstream.seen[0]?.headers.authorization, undefined, 'a validated token is not forwarded')
})
