/**
 * Benchmark peer: minimal MCP servers that respond at once, one for each port that it prints (a JSON array).
 *
 * Argument: JSON of BackendPeerOptions. Supports discovery or `initialize`, the lists, and `tools/call` with a result
 * of about 480 bytes (`echo`), the same as an event stream (`stream`), 1 MB (`large`), `echo` after 100 ms (`slow`), or
 * 16 MB (`huge`). Streams stay open.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface BackendPeerOptions {
  readonly era: 'session' | 'stateless'
  /** Number of tools of each server. */
  readonly tools: number
  /** Number of servers. */
  readonly servers: number
}

interface Call {
  readonly id?: unknown
  readonly method: string
  readonly params?: { readonly name?: string }
}

const { era, tools, servers } = JSON.parse(process.argv[2] ?? '{}') as BackendPeerOptions
const stateless = era === 'stateless'
const complete = stateless ? { resultType: 'complete' } : {}
const listed = stateless ? { ...complete, ttlMs: 0, cacheScope: 'private' } : {}
const capabilities = { tools: { listChanged: true } }
const SLOW_MS = 100
const SPECIAL = ['echo', 'stream', 'large', 'slow', 'huge']
const TOOLS = Array.from({ length: tools }, (_, i) => ({
  name: SPECIAL[i] ?? `tool_${i}`,
  description: `Tool number ${i} does something useful with its input and says what it did`,
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string' }, count: { type: 'integer' } },
    required: ['text'],
  },
}))

function result(length: number): string {
  return JSON.stringify({
    ...complete,
    content: [{ type: 'text', text: 'x'.repeat(length) }],
    isError: false,
  })
}
const small = result(400)
const large = result(1_000_000)
let huge: string | undefined
const results: Readonly<Record<string, string>> = {
  ...(stateless
    ? {
        'server/discover': JSON.stringify({
          ...listed,
          supportedVersions: ['2026-07-28'],
          capabilities,
          serverInfo: { name: 'bench', version: '1' },
        }),
      }
    : {
        initialize: JSON.stringify({
          protocolVersion: '2025-11-25',
          capabilities,
          serverInfo: { name: 'bench', version: '1' },
        }),
      }),
  'tools/list': JSON.stringify({ ...listed, tools: TOOLS }),
  ping: '{}',
}

function toolResult(name: string | undefined): string {
  if (name === 'huge') return (huge ??= result(16_000_000))
  return name === 'large' ? large : small
}

function handle(res: ServerResponse, { id, method, params }: Call): void {
  if (id === undefined) {
    res.writeHead(202).end()
    return
  }
  if (method === 'subscriptions/listen') {
    const notification = { subscriptionId: id, notifications: { toolsListChanged: true } }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: notification })}\n\n`,
    )
    return
  }
  const found = method === 'tools/call' ? toolResult(params?.name) : (results[method] ?? undefined)
  if (found === undefined) {
    response(
      res,
      400,
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"unknown"}}`,
    )
    return
  }
  const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${found}}`
  if (params?.name === 'stream') {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(`event: message\ndata: ${body}\n\n`)
  } else if (params?.name === 'slow') setTimeout(() => response(res, 200, body), SLOW_MS)
  else response(res, 200, body, method === 'initialize' ? { 'mcp-session-id': randomUUID() } : {})
}

function response(
  res: ServerResponse,
  status: number,
  body: string,
  more: Record<string, string> = {},
): void {
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...more,
  })
  res.end(body)
}

function onRequest(req: IncomingMessage, res: ServerResponse): void {
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    return
  }
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    if (req.method === 'POST') handle(res, JSON.parse(Buffer.concat(chunks).toString()) as Call)
    else res.writeHead(200).end()
  })
}

const ports = await Promise.all(
  Array.from(
    { length: servers },
    () =>
      new Promise<number>((resolve) => {
        const server = createServer({ keepAliveTimeout: 60_000 }, onRequest)
        server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
          resolve((server.address() as AddressInfo).port),
        )
      }),
  ),
)
process.stdout.write(`${JSON.stringify(ports)}\n`)
