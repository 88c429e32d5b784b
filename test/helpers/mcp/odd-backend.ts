/**
 * A backend of either era with named oddities: deviations of real servers from the protocol. Each oddity changes the
 * replies of an otherwise correct server, so that several can be combined.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Deviation } from '../../../runtime/observe/index.ts'

export interface OddRequest {
  readonly http: 'GET' | 'POST' | 'DELETE'
  /** JSON-RPC method; empty for a GET, a DELETE and a response. */
  readonly method: string
  /** Raw JSON; undefined for a notification. */
  readonly id: string | undefined
}

/** The reply of the correct server, which oddities change. */
export interface OddReply {
  status: number
  headers: Record<string, string>
  body: string | Buffer
  /** The response stays open after its body. */
  open: boolean
}

export type OddityArea = 'encoding' | 'envelope' | 'notification' | 'ping' | 'session-id' | 'stream'

export interface Oddity {
  readonly name: string
  readonly area: OddityArea
  readonly change: (reply: OddReply, request: OddRequest) => void
  /** The deviation that `/status` reports. Undefined: no report is required. */
  readonly reported?: Deviation | undefined
}

export interface OddBackend {
  readonly url: string
  readonly requests: OddRequest[]
  close(): Promise<void>
}

const tool = '{"name":"echo","inputSchema":{"type":"object"}}'

export interface OddBackendOptions {
  /** `sse`: the session era over the deprecated HTTP+SSE transport. */
  readonly era?: 'session' | 'stateless' | 'sse'
}

export async function startOddBackend(
  oddities: readonly Oddity[],
  { era = 'session' }: OddBackendOptions = {},
): Promise<OddBackend> {
  const requests: OddRequest[] = []
  let stream: ServerResponse | undefined
  const handle = (req: IncomingMessage, res: ServerResponse, body: string): void => {
    const request = readRequest(req, body)
    requests.push(request)
    const reply = era === 'stateless' ? statelessReply(request) : sessionReply(request)
    for (const { change } of oddities) change(reply, request)
    if (era !== 'sse') send(res, reply)
    else if (request.http === 'GET') {
      stream = res
      send(res, eventStream('event: endpoint\ndata: /messages\n\n', { open: true }))
    } else if (request.id === undefined) send(res, reply)
    else {
      send(res, { status: 202, headers: {}, body: '', open: false })
      stream?.write(`data: ${String(reply.body).replaceAll(/^[\r\n\t ]+|[\r\n\t ]+$/g, '')}\n\n`)
    }
  }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => handle(req, res, Buffer.concat(chunks).toString()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function send(res: ServerResponse, reply: OddReply): void {
  res.writeHead(reply.status, reply.headers)
  if (!reply.open) return void res.end(reply.body)
  res.flushHeaders()
  res.write(reply.body)
}

function readRequest(req: IncomingMessage, body: string): OddRequest {
  const http = req.method as OddRequest['http']
  const message = body === '' ? {} : (JSON.parse(body) as { id?: unknown; method?: string })
  const id = message.id === undefined ? undefined : JSON.stringify(message.id)
  return { http, method: message.method ?? '', id }
}

export const jsonHeaders = { 'content-type': 'application/json' }
const results: Readonly<Record<string, string>> = {
  initialize:
    '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}',
  'server/discover':
    '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}',
  'tools/list': `{"tools":[${tool}]}`,
  'tools/call': '{"content":[{"type":"text","text":"called"}]}',
  ping: '{}',
}

function sessionReply({ http, method, id }: OddRequest): OddReply {
  if (http === 'GET') return eventStream(': open\n\n', { open: true })
  if (http === 'DELETE' || id === undefined || method === '')
    return { status: http === 'DELETE' ? 200 : 202, headers: {}, body: '', open: false }
  if (method === 'server/discover') return response(id, undefined)
  const reply = response(id, results[method])
  if (method === 'initialize') reply.headers['mcp-session-id'] = 'session-1'
  return reply
}

function statelessReply({ http, method, id }: OddRequest): OddReply {
  if (http !== 'POST' || id === undefined) return { status: 405, headers: {}, body: '', open: false }
  if (method === 'initialize')
    return {
      status: 400,
      headers: jsonHeaders,
      body: `{"jsonrpc":"2.0","id":${id},"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}}`,
      open: false,
    }
  if (method === 'subscriptions/listen')
    return eventStream(
      event('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'),
      { open: true },
    )
  return response(id, results[method]?.replace(/^\{(?!"resultType")/, '{"resultType":"complete",'))
}

function response(id: string, result: string | undefined): OddReply {
  const rest =
    result === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":${result}`
  return {
    status: 200,
    headers: { ...jsonHeaders },
    body: `{"jsonrpc":"2.0","id":${id},${rest}}`,
    open: false,
  }
}

export function eventStream(body: string, { open }: { readonly open: boolean }): OddReply {
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body, open }
}

export function event(message: string): string {
  return `event: message\ndata: ${message}\n\n`
}
