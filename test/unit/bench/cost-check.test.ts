/** The regression check of CPU time per call: its limits, and its load generator. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { overLimit } from '../../bench/cost/limits.ts'
import { sendCalls } from '../../bench/cost/load.ts'
import { callOf } from '../../bench/vmcp/client.ts'

function measured(micros: Readonly<Record<string, number>>) {
  return Object.entries(micros).map(([name, one]) => ({ name, micros: one, otherMicros: undefined }))
}

t.test('a call is compared with its base, and a call that is too expensive is reported', async (t) => {
  const within = overLimit(measured({ floor: 100, proxy: 120, vMCP: 200, '50 policies': 210 }))
  t.same(
    within.map(({ name, base, isOver }) => [name, base, isOver]),
    [
      ['proxy', 'floor', false],
      ['vMCP', 'floor', false],
      ['50 policies', 'vMCP', false],
    ],
  )
  t.match(overLimit(measured({ floor: 100, proxy: 400 })), [{ name: 'proxy', ratio: 4, isOver: true }])
  t.match(
    overLimit(measured({ floor: 100, proxy: Number.NaN })),
    [{ isOver: true }],
    'a missing figure counts as a failure',
  )
})

async function startBackend(
  t: Tap,
  respond: (body: string) => { status: number; text: string; chunked?: boolean },
) {
  let calls = 0
  const server = createServer((req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    req.on('end', () => {
      calls++
      const { status, text, chunked = false } = respond(body)
      res.writeHead(status, chunked ? {} : { 'content-length': Buffer.byteLength(text) })
      res.write(text.slice(0, 5))
      res.end(text.slice(5))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, calls: () => calls }
}
type Tap = Pick<typeof t, 'teardown'>

const result = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
const requests = [callOf('session', 'echo', 's')]

t.test('the load generator sends the exact number of calls, each with its own id', async (t) => {
  const ids = new Set<unknown>()
  const backend = await startBackend(t, (body) => {
    ids.add((JSON.parse(body) as { id: unknown }).id)
    return { status: 200, text: result, chunked: ids.size % 2 === 0 }
  })
  await sendCalls(backend.url, requests, 50, 4)
  t.equal(backend.calls(), 50)
  t.equal(ids.size, 50)
})

t.test('the load generator fails on a response that is not a result', async (t) => {
  const bad = [
    { status: 200, text: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}' },
    { status: 200, text: result.replace('"content":[]', '"content":[],"isError":true') },
    { status: 503, text: result },
  ]
  for (const response of bad) {
    const backend = await startBackend(t, () => response)
    await t.rejects(sendCalls(backend.url, requests, 5, 1), /not a result/)
  }
})
