/**
 * A server that answers every GET with an endless stream. The search for its login documents is bounded, and its tools
 * are still listed. The search only happens on a terminal, where a login can be offered.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { missingTerminal, startOnTerminal } from '../../helpers/terminal.ts'

t.setTimeout(120_000)

const results: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 's', version: '1' },
  },
  'tools/list': { tools: [{ name: 'found', inputSchema: { type: 'object' } }] },
}

async function startEndless(t: Test, type: string): Promise<string> {
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      res.writeHead(200, { 'content-type': type })
      const timer = setInterval(() => res.write(': '), 100)
      res.write(': ')
      res.on('close', () => clearInterval(timer))
      return
    }
    let body = ''
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    req.on('end', () => {
      const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string }
      if (id === undefined) return void res.writeHead(202).end()
      const result = results[method ?? '']
      const reply = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ jsonrpc: '2.0', id, ...reply }))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

for (const type of ['text/event-stream', 'application/json']) {
  await t.test(`tools list: GET requests get an endless ${type}`, { skip: missingTerminal }, async (t) => {
    const terminal = startOnTerminal(['tools', 'list', await startEndless(t, type)])
    t.teardown(() => terminal.child.kill())
    t.equal(await terminal.ended(), 0, terminal.output())
    t.match(terminal.output(), 'found')
  })
}

await t.test('an event stream is not a document, and its body is not read', async (t) => {
  const fetch = makeFetch()
  t.teardown(() => fetch.close())
  const response = await fetch(await startEndless(t, 'text/event-stream'))
  t.equal(response.status, 200)
  t.equal(await response.text(), '')
})
