/**
 * Benchmark peer: a bare MCP server of the session era. Knows `initialize`, the lists (as many tools as the argument
 * says) and `tools/call` with a result of about 480 bytes, as JSON or, for the tool `stream`, as an event stream.
 * Prints its port.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'

const toolCount = Number(process.argv[2] ?? 100)
const tools = Array.from({ length: toolCount }, (_, i) => ({
  name: i === 0 ? 'echo' : i === 1 ? 'stream' : i === 2 ? 'large' : `tool_${i}`,
  description: `Tool number ${i} does something useful with its input and says what it did`,
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string' }, count: { type: 'integer' } },
    required: ['text'],
  },
}))
const small = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(400) }], isError: false })
const large = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(1_000_000) }], isError: false })

const results: Readonly<Record<string, string>> = {
  initialize: JSON.stringify({
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'bench', version: '1' },
  }),
  'tools/list': JSON.stringify({ tools }),
  ping: '{}',
}

const server = createServer((req, res) => {
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    return
  }
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    if (req.method !== 'POST') {
      res.writeHead(200).end()
      return
    }
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
      id?: unknown
      method: string
      params?: { name?: string }
    }
    if (id === undefined) {
      res.writeHead(202).end()
      return
    }
    if (method === 'server/discover') {
      res.writeHead(400).end()
      return
    }
    const result =
      method === 'tools/call' ? (params?.name === 'large' ? large : small) : (results[method] ?? '{}')
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
    const session = method === 'initialize' ? { 'mcp-session-id': randomUUID() } : {}
    if (params?.name === 'stream') {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(`event: message\ndata: ${body}\n\n`)
      return
    }
    res.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...session,
    })
    res.end(body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
