/** A large result is forwarded while it arrives, in all combinations of eras, and breaks off when it must. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { type RawRequest, startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless, statelessRequest } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'
import { quotaEras, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'
import { startWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

t.setTimeout(120_000)

const half = 'é'.repeat(100_000)
const call = { name: 'echo', arguments: {} }

interface Rig {
  readonly url: string
  readonly origin: string
  readonly session: Awaited<ReturnType<typeof openSession>>
}

/** A virtual server with a backend whose tool sends the configured response. */
async function startRig(
  t: Test,
  answer: (request: RawRequest) => void | Promise<void>,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Rig> {
  const backend = await startRawBackend({
    responses: {
      'tools/call': async (request) => {
        await answer(request)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw'), ...more })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return { url: vmcp.url, origin: vmcp.origin, session: await openSession(vmcp.url) }
}

/** Formats of the backend's response: the head, the parts before and after a text, and the end. */
interface Way {
  readonly type: string
  readonly before: (id: string) => string
  readonly after: (id: string) => string
}

const ways: Readonly<Record<string, Way>> = {
  'JSON, id first': {
    type: 'application/json',
    before: (id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`,
    after: () => '"}],"isError":false}}',
  },
  'JSON, result first': {
    type: 'application/json',
    before: () => '{"result":{"_meta":{"gatehouse.dev/quota":1,"a/b":1},"content":[{"type":"text","text":"',
    after: (id) => `"}]},"jsonrpc":"2.0","id":${id}}`,
  },
  'an event': {
    type: 'text/event-stream',
    before: (id) =>
      `data: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"_meta":{"io.modelcontextprotocol/x":1},"type":"text","text":"`,
    after: () => '"}]}}\n\n',
  },
}

const head = (res: ServerResponse, type: string): void => {
  res.writeHead(200, { 'content-type': type })
}

/** Makes a call as a client of an era. Resolves when its response begins. */
function send(era: 'session' | 'stateless', { url, session }: Rig, signal?: AbortSignal): Promise<Response> {
  const { headers, body } =
    era === 'stateless'
      ? statelessRequest('tools/call', call)
      : {
          headers: session.headers,
          body: JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: call }),
        }
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
    ...(signal && { signal }),
  })
}

for (const era of ['session', 'stateless'] as const)
  for (const [name, way] of Object.entries(ways))
    t.test(
      `${era} clients: the first half arrives before the backend has sent the second, ${name}`,
      async (t) => {
        const begun = Promise.withResolvers<void>()
        const rig = await startRig(t, async ({ id, res }) => {
          head(res, way.type)
          res.write(way.before(id) + half)
          await begun.promise
          res.end(half + way.after(id))
        })
        const response = await send(era, rig)
        const reader = response.body?.getReader()
        const chunks: Uint8Array[] = []
        for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
          chunks.push(read.value)
          if (Buffer.concat(chunks).length > 100_000) begun.resolve()
        }
        const { id, result } = JSON.parse(Buffer.concat(chunks).toString()) as {
          id: unknown
          result: Record<string, unknown>
        }
        t.not(id, undefined)
        t.strictSame(result['content'], [
          { type: 'text', text: half + half, ...(keepsMeta(era, name) && reserved) },
        ])
        if (era === 'session') t.equal(result['resultType'], undefined)
        else t.equal(result['resultType'], 'complete')
        if (name === 'JSON, result first') {
          t.match(result['_meta'], { 'a/b': 1 })
          t.notOk(
            Object.hasOwn(result['_meta'] as object, 'gatehouse.dev/quota'),
            'reserved names come only from the server',
          )
        }
      },
    )

/** Reserved metadata for the direct client is removed for sessions. */
const keepsMeta = (era: string, name: string) => era === 'stateless' && name === 'an event'
const reserved = { _meta: { 'io.modelcontextprotocol/x': 1 } }

for (const era of ['session', 'stateless'] as const)
  t.test(`a backend of the stateless era: results are forwarded to ${era} clients`, async (t) => {
    const fixture = await startFixture({ era: 'stateless' })
    const vmcp = await startTestVmcp({ raw: fixture.url }, { aggregation: bareNames('raw') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const params = { name: 'echo', arguments: { text: half } }
    const session = await openSession(vmcp.url)
    const { response, headers } =
      era === 'session'
        ? await session.request('tools/call', params)
        : await stateless(vmcp.url, 'tools/call', params)
    t.match(response?.result, { content: [{ type: 'text', text: half }] })
    t.equal(headers.get('content-length'), null, 'the length was unknown at the start')
  })

const failures: Readonly<Record<string, (id: string, res: ServerResponse) => void>> = {
  'is cut': (_id, res) => void setTimeout(() => res.destroy(), 50),
  'continues as invalid JSON': (_id, res) => res.end('"}],]}}'),
  'has a control character in a text': (id, res) => res.end(`\u0001"}]},"jsonrpc":"2.0","id":${id}}`),
  'belongs to no request': (_id, res) => res.end('"}]},"jsonrpc":"2.0","id":"other"}'),
  'has a member twice': (id, res) => res.end(`"}],"content":[]},"jsonrpc":"2.0","id":${id}}`),
  'has a result and an error': (id, res) => res.end(`"}]},"error":{},"jsonrpc":"2.0","id":${id}}`),
  'is too deep': (id, res) =>
    res.end(`"}],"x":${'['.repeat(300)}${']'.repeat(300)}},"jsonrpc":"2.0","id":${id}}`),
  'has an unknown protocol version': (id, res) => res.end(`"}]},"jsonrpc":"3.0","id":${id}}`),
}

for (const [name, fail] of Object.entries(failures))
  t.test(`the client sees no complete response when a result ${name}`, async (t) => {
    const telemetry = { enablePrometheusMetricsPath: true }
    const rig = await startRig(
      t,
      ({ id, res }) => {
        head(res, 'application/json')
        res.write(`{"result":{"content":[{"type":"text","text":"${half}`)
        fail(id, res)
      },
      { telemetry },
    )
    for (const era of ['session', 'stateless'] as const) {
      const response = await send(era, rig)
      t.equal(response.status, 200)
      await t.rejects(response.text(), `${era}: the response is cut`)
    }
    t.match((await rig.session.request('ping')).response?.result, {}, 'the session continues')
    const metrics = await (await fetch(`${rig.origin}/metrics`)).text()
    t.match(metrics, /error_type="BACKEND_PROTOCOL"/)
  })

t.test('a client that reads slowly slows the backend down, and is not disconnected', async (t) => {
  let sent = 0
  const rig = await startRig(
    t,
    async ({ id, res }) => {
      head(res, 'application/json')
      res.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
      for (let n = 0; n < 100 && !res.destroyed; n++) {
        sent += half.length
        if (!res.write(half)) await once(res, 'drain')
      }
      res.end('"}]}}')
    },
    { operational: { timeouts: { default: '4s' } } },
  )
  const socket = await rawCall(rig)
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  const before = sent
  t.ok(before < 80 * half.length, 'the rest waits at the backend')
  let received = 0
  let tail = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length
    tail = chunk.toString('latin1').slice(-200)
    if (tail.endsWith('0\r\n\r\n')) socket.end()
  })
  socket.resume()
  await once(socket, 'close')
  t.equal(sent, 100 * half.length)
  t.ok(received > 100 * Buffer.byteLength(half))
  t.match(tail, /\}\}\r\n0\r\n\r\n$/, 'complete, long after the backend’s timeout')
})

/** Makes a call without reading its response. */
async function rawCall({ url, session }: Rig, version = '1.1'): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.pause()
  await once(socket, 'connect')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
  const headers = Object.entries({
    host: `${hostname}:${port}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
    ...session.headers,
  })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST /mcp HTTP/${version}\r\n${lines}\r\n${body}`)
  return socket
}

t.test('a client that disconnects ends the request to the backend', async (t) => {
  const closed = Promise.withResolvers<void>()
  const rig = await startRig(t, ({ id, res }) => {
    head(res, 'application/json')
    res.write(ways['JSON, id first']?.before(id) + half)
    res.once('close', () => closed.resolve())
  })
  const abort = new AbortController()
  const response = await send('session', rig, abort.signal)
  t.equal(response.status, 200)
  abort.abort()
  await t.rejects(response.text())
  await closed.promise
  t.match((await rig.session.request('ping')).response?.result, {})
})

t.test('a cancelled request ends its result, and the backend is notified', async (t) => {
  const closed = Promise.withResolvers<void>()
  const rig = await startRig(t, ({ id, res }) => {
    head(res, 'application/json')
    res.write(ways['JSON, id first']?.before(id) + half)
    res.once('close', () => closed.resolve())
  })
  const response = await send('session', rig)
  await rig.session.notify('notifications/cancelled', { requestId: 5 })
  await t.rejects(response.text())
  await closed.promise
})

t.test('an HTTP/1.0 client gets a complete response with its length', async (t) => {
  const rig = await startRig(t, ({ id, res }) => {
    const way = ways['JSON, id first']
    head(res, 'application/json')
    res.end(`${way?.before(id)}${half}${way?.after(id)}`)
  })
  const socket = await rawCall(rig, '1.0')
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  socket.resume()
  await once(socket, 'close')
  t.match(text, /content-length: 200\d\d\d/i)
})

t.test(
  'results that guardrails or limits without a known length must read are complete before they are forwarded',
  async (t) => {
    const configs: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      guardrails: { guardrails: { redact: [{ name: 'mail', patterns: ['email'], direction: 'results' }] } },
      limit: { operational: { maxResultBytes: 1_000_000 } },
    }
    for (const [name, more] of Object.entries(configs)) {
      const rig = await startRig(
        t,
        ({ id, res }) => {
          const way = ways['JSON, id first']
          head(res, 'application/json')
          res.write(`${way?.before(id)}${half}`)
          res.end(way?.after(id))
        },
        more,
      )
      const { headers, text } = await rig.session.request('tools/call', call)
      t.match(headers.get('content-length'), /^200\d\d\d$/, name)
      t.match(text, half, name)
    }
  },
)

t.test('results for webhooks are complete', async (t) => {
  const webhook = await startWebhook()
  t.teardown(() => webhook.close())
  const rig = await startWebhookRig(t, { validating: [hook('audit', webhook, { phase: 'response' })] })
  for (const era of ['session', 'stateless'] as const) {
    const ask = await rig.as(era, 'alice')
    const { headers, text } = await ask('tools/call', { name: 'echo', arguments: { text: half } })
    t.match(headers.get('content-length'), /^200\d\d\d$/)
    t.match(text, half)
  }
  t.equal(webhook.asked.length, 2)
})

t.test('quotas: streamed results are counted, and the remaining budget is reported', async (t) => {
  const quota = { name: 'bytes', per: 'user', unit: 'resultBytes', window: 'day', limit: 250_000 }
  const rig = await startQuotaRig(
    t,
    { quotas: [quota] },
    {
      backend: { responses: { 'tools/call': () => textResult(half) } },
    },
  )
  for (const era of quotaEras) {
    const caller = await rig.as(era, `user-${era}`)
    const { headers, response } = await caller.call()
    t.equal(headers.get('content-length'), null, 'it was forwarded while it arrived')
    t.match(response?.result, {
      content: [{ type: 'text', text: half }],
      _meta: { 'gatehouse.dev/quota': [{ quota: 'bytes' }] },
    })
    t.ok((await caller.call()).response?.result)
    t.match((await caller.call()).text, /exceeded|exhausted|quota/i)
  }
})
