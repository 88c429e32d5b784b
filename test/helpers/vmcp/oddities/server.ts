/**
 * Many odd backends behind one listener, each at its own path: correct servers of either era with two pages of every
 * list, whose replies are changed by oddities.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const listKinds = ['tools', 'prompts', 'resources', 'templates'] as const
export type OddList = (typeof listKinds)[number]
export type OddEra = 'session' | 'stateless'

export interface ListFacts {
  readonly method: string
  /** Member of the result that contains the items. */
  readonly member: string
}

export const lists: Readonly<Record<OddList, ListFacts>> = {
  tools: { method: 'tools/list', member: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts' },
  resources: { method: 'resources/list', member: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates' },
}

/** The parts of a request that an oddity can read. */
export interface OddExchange {
  readonly http: string
  /** JSON-RPC method; empty for a GET, a DELETE and a response. */
  readonly method: string
  /** Raw JSON; undefined for a notification. */
  readonly id: string | undefined
  readonly cursor: unknown
}

/** The reply of the correct server, which oddities change. */
export interface OddReply {
  status: number
  headers: Record<string, string>
  body: string | Buffer
  /** open: the response does not end; cut: the connection closes in the middle; silent: no byte is sent. */
  fate: 'whole' | 'open' | 'cut' | 'silent'
}

export interface BackendOddity {
  readonly name: string
  /** Lists whose items may be missing. */
  readonly loses: readonly OddList[]
  /** The first page of the lost lists remains. */
  readonly keepsFirstPage?: boolean
  /** Exchanges that it changes. Two oddities of one exchange may lose items that neither loses alone. */
  readonly touches: readonly (OddList | 'opening' | 'calls' | 'other')[]
  /** Missing items are not reported, because the backend claims to have none. */
  readonly isQuiet?: boolean
  /** `eras`: default both. */
  readonly era?: OddEra
  readonly change: (reply: OddReply, exchange: OddExchange) => void
}

export interface OddServer {
  /** Returns the URL of a backend with these oddities; `name` is part of its URIs. */
  add(
    name: string,
    era: OddEra,
    oddities: readonly BackendOddity[],
  ): { readonly url: string; readonly seen: string[] }
  close(): Promise<void>
}

interface OddBackend {
  readonly name: string
  readonly era: OddEra
  readonly oddities: readonly BackendOddity[]
  /** Methods of all requests. */
  readonly seen: string[]
}

export async function startOddServer(): Promise<OddServer> {
  const backends: OddBackend[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const backend = backends[Number(req.url?.split('/')[1])]
      if (backend) respond(backend, req, res, Buffer.concat(chunks).toString())
      else res.writeHead(500).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    add(name, era, oddities) {
      const backend: OddBackend = { name, era, oddities, seen: [] }
      const url = `http://127.0.0.1:${port}/${backends.push(backend) - 1}/mcp`
      return { url, seen: backend.seen }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function respond(
  { name, era, oddities, seen }: OddBackend,
  req: IncomingMessage,
  res: ServerResponse,
  body: string,
) {
  const exchange = exchangeOf(req, body)
  seen.push(exchange.method === '' ? exchange.http : exchange.method)
  const reply = era === 'session' ? sessionReply(name, exchange) : statelessReply(name, exchange)
  for (const { change } of oddities) change(reply, exchange)
  if (reply.fate === 'silent') return
  res.writeHead(reply.status, reply.headers)
  if (reply.fate === 'whole') return void res.end(reply.body)
  res.flushHeaders()
  res.write(reply.body)
  if (reply.fate === 'cut') setImmediate(() => res.destroy())
}

function exchangeOf(req: IncomingMessage, body: string): OddExchange {
  const message = (body === '' ? {} : JSON.parse(body)) as {
    id?: unknown
    method?: string
    params?: { cursor?: unknown }
  }
  return {
    http: req.method ?? '',
    method: message.method ?? '',
    id: message.id === undefined ? undefined : JSON.stringify(message.id),
    cursor: message.params?.cursor,
  }
}

const capabilities = '{"tools":{"listChanged":true},"prompts":{},"resources":{}}'
const info = '"serverInfo":{"name":"odd","version":"1"}'

/** Item `a` or `b` of a list. */
function itemOf(kind: OddList, backend: string, which: string): string {
  switch (kind) {
    case 'tools':
      return `{"name":"${which}","description":"T","inputSchema":{"type":"object"}}`
    case 'prompts':
      return `{"name":"${which}"}`
    case 'resources':
      return `{"uri":"${resourceOf(backend, which)}","name":"${which}"}`
    case 'templates':
      return `{"uriTemplate":"${templateOf(backend, which)}","name":"${which}"}`
    default:
      return '{}'
  }
}

export const resourceOf = (backend: string, which: string): string => `odd://${backend}/${which}`
export const templateOf = (backend: string, which: string): string => `tpl://${backend}/${which}/{x}`

/** Returns the JSON of a result, or undefined for an unknown method. */
function resultOf(backend: string, { method, cursor }: OddExchange): string | undefined {
  for (const kind of listKinds) {
    const { method: listMethod, member } = lists[kind]
    if (method !== listMethod) continue
    if (cursor === undefined) return `{"${member}":[${itemOf(kind, backend, 'a')}],"nextCursor":"2"}`
    return `{"${member}":[${itemOf(kind, backend, 'b')}]}`
  }
  const results: Readonly<Record<string, string>> = {
    'tools/call': '{"content":[{"type":"text","text":"called"}]}',
    'prompts/get': '{"messages":[]}',
    'resources/read': '{"contents":[]}',
    ping: '{}',
  }
  return results[method]
}

function sessionReply(backend: string, exchange: OddExchange): OddReply {
  const { http, method, id } = exchange
  if (http === 'GET') return { status: 200, headers: { ...streamType }, body: ': open\n\n', fate: 'open' }
  if (http !== 'POST' || id === undefined || method === '')
    return { status: http === 'DELETE' ? 200 : 202, headers: {}, body: '', fate: 'whole' }
  if (method !== 'initialize') return responseOf(id, resultOf(backend, exchange))
  const result = `{"protocolVersion":"2025-11-25","capabilities":${capabilities},${info}}`
  const reply = responseOf(id, result)
  reply.headers['mcp-session-id'] = `session-of-${backend}`
  return reply
}

function statelessReply(backend: string, exchange: OddExchange): OddReply {
  const { http, method, id } = exchange
  if (http !== 'POST' || id === undefined) return { status: 405, headers: {}, body: '', fate: 'whole' }
  if (method === 'initialize') {
    const error = '{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}'
    return {
      status: 400,
      headers: { ...jsonType },
      body: `{"jsonrpc":"2.0","id":${id},"error":${error}}`,
      fate: 'whole',
    }
  }
  if (method === 'subscriptions/listen') {
    const acknowledged = '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'
    return { status: 200, headers: { ...streamType }, body: `data: ${acknowledged}\n\n`, fate: 'open' }
  }
  const found =
    method === 'server/discover'
      ? `{"supportedVersions":["2026-07-28"],"capabilities":${capabilities},${info}}`
      : resultOf(backend, exchange)
  return responseOf(
    id,
    found?.replace(/^\{(?=.)/, found === '{}' ? '{"resultType":"complete"' : '{"resultType":"complete",'),
  )
}

const jsonType = { 'content-type': 'application/json' }
export const streamType = { 'content-type': 'text/event-stream' }

function responseOf(id: string, result: string | undefined): OddReply {
  const rest =
    result === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":${result}`
  return {
    status: 200,
    headers: { ...jsonType },
    body: `{"jsonrpc":"2.0","id":${id},${rest}}`,
    fate: 'whole',
  }
}
