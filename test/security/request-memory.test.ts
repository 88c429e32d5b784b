/**
 * Bodies that are each within their limit, but too many at once: slow ones are rejected and other requests are served,
 * by a virtual server and by a proxy.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { startRawBackend, textResult } from '../helpers/mcp/raw-backend.ts'
import { post, statelessRequest } from '../helpers/mcp/wire.ts'
import { json, startRig, startUpstream } from '../helpers/proxy/rig.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

const load = { maxBodiesBytes: 1_000_000 }
const part = Buffer.alloc(200_000, ' ')

interface Sender {
  readonly socket: Socket
  /** Returns the response. */
  readonly text: () => string
}

/** Sends the beginning of a body that never completes. */
async function begin(port: number): Promise<Sender> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  socket.setEncoding('latin1').on('data', (data: string) => (text += data))
  const head = Object.entries(json).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n${head.join('')}Content-Length: 5000000\r\n\r\n`,
  )
  await new Promise((resolve) => socket.write(part, resolve))
  return { socket, text: () => text }
}

async function fillAndAsk(port: number, ask: () => Promise<number>) {
  const senders: Sender[] = []
  // One caller, here an address, may use three quarters.
  for (let i = 0; i < 3; i++) senders.push(await begin(port))
  await setTimeout(1_100)
  for (let i = 0; i < 3; i++) senders.push(await begin(port))
  const statuses = await Promise.all([ask(), ask()])
  const refused = senders.filter(
    ({ text }) => text().startsWith('HTTP/1.1 503 ') && /retry-after/i.test(text()),
  )
  for (const { socket } of senders) socket.destroy()
  return { refused: refused.length, statuses }
}

t.test('request memory: a virtual server rejects slow bodies and serves other requests', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('done') } })
  const vmcp = await startTestVmcp(
    { big: backend.url },
    { aggregation: bareNames('big'), telemetry: { enablePrometheusMetricsPath: true } },
    { load },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { refused, statuses } = await fillAndAsk(Number(new URL(vmcp.url).port), async () => {
    const { body, headers } = statelessRequest('tools/call', {
      name: 'echo',
      arguments: { a: 'x'.repeat(50_000) },
    })
    return (await post(vmcp.url, body, headers)).status
  })
  t.same(statuses, [200, 200])
  t.ok(refused >= 3, `${refused} were rejected`)
  const { problem_details: problems } = (await (await fetch(`${vmcp.origin}/status`)).json()) as {
    problem_details: { type: string; fix: string }[]
  }
  t.match(problems, [{ type: 'server_overloaded', fix: /memory/ }])
  const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
  t.match(metrics, new RegExp(`gatehouse_overload_refusals_total ${refused}\\b`))
})

t.test('request memory: a proxy does too, and counts requests that wait for a slow target', async (t) => {
  const gate = Promise.withResolvers<undefined>()
  const upstream = await startUpstream(({ body }, res) => {
    if (body.startsWith('w')) void gate.promise.then(() => res.end())
    else res.end()
  })
  const rig = await startRig(upstream.url, { load })
  t.teardown(() => Promise.all([rig.close(), upstream.close()]))
  const send = async (body: string) => {
    const response = await fetch(`${rig.url}/mcp`, { method: 'POST', headers: json, body })
    await response.arrayBuffer()
    return response.status
  }
  const { refused, statuses } = await fillAndAsk(rig.port, () => send('x'.repeat(50_000)))
  t.same(statuses, [200, 200])
  t.ok(refused >= 3, `${refused} were rejected`)

  // Waits until the end of the connections above has been noticed.
  while ((await send('x'.repeat(700_000))) === 503) await setTimeout(10)
  const waiting = Array.from({ length: 3 }, () => send('w'.repeat(240_000)))
  const isWaiting = ({ body }: { readonly body: string }) => body.startsWith('w')
  while (upstream.seen.filter(isWaiting).length < 3) await setTimeout(10)
  t.equal(await send('x'.repeat(100_000)), 503)
  t.equal(await send('x'.repeat(1_000)), 200, 'small bodies are not counted')
  gate.resolve(undefined)
  t.same(await Promise.all(waiting), [200, 200, 200])
  t.equal(await send('x'.repeat(100_000)), 200, 'the memory is released')
})
