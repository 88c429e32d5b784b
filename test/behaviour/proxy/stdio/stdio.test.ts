/** `gatehouse proxy stdio`: a real SDK client over standard streams, and the wire format line by line. */
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { runStdio } from '../../../../runtime/proxy/index.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { rpc, startUpstream, type Upstream } from '../../../helpers/proxy/rig.ts'
import { program, runGatehouse } from '../../../helpers/gatehouse.ts'

proves('1.command.stdio')

/** The bridge in this process, and its two streams. */
function start(target: Upstream, path = '/mcp') {
  const input = new PassThrough()
  const output = new PassThrough()
  const lines = createInterface({ input: output })
  const waiting: ((line: string) => void)[] = []
  const seen: string[] = []
  lines.on('line', (line) => {
    const next = waiting.shift()
    if (next) next(line)
    else seen.push(line)
  })
  const done = runStdio({
    config: resolveProxyConfig('stdio', { targetUri: target.url, remoteForwardHeaders: ['X-Key=k'] }, {}),
    path,
    input,
    output,
    log: silentLog,
    notify() {},
  })
  return {
    done,
    write: (line: string) => input.write(`${line}\n`),
    end: () => input.end(),
    next: (): Promise<string> => {
      const line = seen.shift()
      return line === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(line)
    },
  }
}

await t.test('stdio: an SDK client lists and calls tools through it', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, 'proxy', 'stdio', fixture.url],
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools()
  t.ok(tools.length > 0)
  const result = await client.callTool({ name: 'test_simple_text', arguments: {} })
  t.match(result, { content: [{ type: 'text' }] })
  await client.close()
})

await t.test('stdio: sessions, revisions, notifications and the end of input, on the wire', async (t) => {
  const target = await startUpstream((seen, res) => {
    const message: { id?: unknown; method?: string } = seen.body === '' ? {} : JSON.parse(seen.body)
    if (message.method === 'initialize') {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'sid' })
      res.end(
        JSON.stringify(
          { jsonrpc: '2.0', id: message.id, result: { protocolVersion: '2025-06-18' } },
          undefined,
          2,
        ),
      )
    } else if (seen.method === 'GET') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.write('id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n')
    } else if (seen.method === 'DELETE') res.writeHead(204).end()
    else if (message.id === undefined) res.writeHead(202).end()
    else {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.end(
        `data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\ndata: {"jsonrpc":"2.0",\ndata: "id":${JSON.stringify(message.id)},"result":{"big":12345678901234567890}}\n\n`,
      )
    }
  })
  t.teardown(() => target.close())
  const bridge = start(target, '/some/path')
  bridge.write(rpc(1, 'initialize', {}))
  t.match(
    JSON.parse(await bridge.next()),
    { id: 1, result: { protocolVersion: '2025-06-18' } },
    'a pretty-printed response is one line',
  )
  bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  t.equal(
    await bridge.next(),
    '{"jsonrpc":"2.0","method":"notifications/message"}',
    'the standalone stream is open',
  )
  bridge.write(rpc('a', 'tools/call'))
  t.equal(await bridge.next(), '{"jsonrpc":"2.0","method":"notifications/progress"}')
  t.equal(
    await bridge.next(),
    '{"jsonrpc":"2.0", "id":"a","result":{"big":12345678901234567890}}',
    'byte for byte',
  )
  bridge.write('not json')
  t.match(JSON.parse(await bridge.next()), { error: { code: -32700 } })
  bridge.end()
  t.equal(await bridge.done, true)
  const call = target.seen.find((seen) => seen.body.includes('tools/call'))
  t.match(call, {
    url: '/some/path',
    headers: { 'mcp-session-id': 'sid', 'mcp-protocol-version': '2025-06-18', 'x-key': 'k' },
  })
  t.equal(call?.headers.authorization, undefined, 'the bridge’s own token is not forwarded')
  t.equal(target.seen.at(-1)?.method, 'DELETE')
})

await t.test('stdio: failures become errors with the request’s id', async (t) => {
  let broken = 0
  const target = await startUpstream((seen, res) => {
    const message: { id?: unknown; method?: string } = JSON.parse(seen.body || '{}')
    if (message.method === 'rpc-error') {
      res.writeHead(400, { 'Content-Type': 'application/json' })
      res.end('{"jsonrpc":"2.0","error":{"code":-32020,"message":"mismatch"}}')
    } else if (message.method === 'html')
      res.writeHead(500, { 'Content-Type': 'text/html' }).end('<h1>secret</h1>')
    else if (message.method === 'cut') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.end(': nothing\n\n')
    } else if (message.method === 'resume') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.end('id: 1\nretry: 1\ndata: \n\n')
    } else if (seen.method === 'GET' && seen.headers['last-event-id'] === '1') {
      broken++
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.end('id: 2\ndata: {"jsonrpc":"2.0","id":4,"result":{"resumed":true}}\n\n')
    } else
      res
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":{}}`)
  })
  t.teardown(() => target.close())
  const bridge = start(target)
  bridge.write(rpc(1, 'rpc-error'))
  t.equal(await bridge.next(), '{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"mismatch"}}')
  bridge.write(rpc(2, 'html'))
  const failed = await bridge.next()
  t.match(JSON.parse(failed), { id: 2, error: { code: -32603, message: /HTTP 500/ } })
  t.notMatch(failed, /secret/)
  bridge.write(rpc(3, 'cut'))
  t.match(JSON.parse(await bridge.next()), { id: 3, error: { code: -32603 } })
  bridge.write(rpc(4, 'resume'))
  t.match(JSON.parse(await bridge.next()), { id: 4, result: { resumed: true } })
  t.equal(broken, 1)
  bridge.end()
  await bridge.done
})

await t.test('stdio: a stateless request gets the headers that its revision requires', async (t) => {
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  t.teardown(() => target.close())
  const bridge = start(target)
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  bridge.write(rpc(1, 'tools/call', { name: 'écho', _meta: meta }))
  await bridge.next()
  t.match(target.seen[0]?.headers, {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': /^=\?base64\?/,
  })
  bridge.end()
  await bridge.done
})

await t.test(
  'stdio: the command exits with 0 at the end of input, and with 1 without a server',
  async (t) => {
    const target = await startUpstream((_seen, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json' })
      res.end('{"jsonrpc":"2.0","id":1,"result":{}}')
    })
    t.teardown(() => target.close())
    const good = await runGatehouse(['proxy', 'stdio', `${target.url}/mcp`], `${rpc(1, 'ping')}\n`)
    t.equal(good.code, 0)
    t.equal(good.stdout, '{"jsonrpc":"2.0","id":1,"result":{}}\n', 'only messages')
    const bad = await runGatehouse(['proxy', 'stdio', 'http://127.0.0.1:1/mcp'], `${rpc(1, 'ping')}\n`)
    t.equal(bad.code, 1)
    t.match(JSON.parse(bad.stdout), { id: 1, error: { code: -32603 } })
    t.match(bad.stderr, /could not be reached/)
    t.equal((await runGatehouse(['proxy', 'stdio', 'ftp://x'])).code, 2)
    t.equal((await runGatehouse(['proxy', 'stdio'])).code, 2)
  },
)

await t.test('stdio: a signal ends it', async (t) => {
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  t.teardown(() => target.close())
  const child = spawn(process.execPath, [program, 'proxy', 'stdio', `${target.url}/mcp`], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.write(`${rpc(1, 'ping')}\n`)
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})
