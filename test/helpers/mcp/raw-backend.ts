/**
 * A hand-written backend for behavior that no SDK has: exact bytes, broken responses, errors on demand. Session era
 * over streamable HTTP. Responses are JSON text and are never serialized again.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RawRequest {
  /** The body as received. */
  readonly body: string
  readonly id: string
  readonly method: string
  readonly params: Record<string, unknown>
  readonly headers: Record<string, string | string[] | undefined>
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

/** Returns the JSON text of the result, or nothing when it has written the response itself. */
export type RawAnswer = (request: RawRequest) => string | undefined | Promise<string | undefined>

export interface RawBackendOptions {
  /** JSON text of the tools. Default: one tool `echo`. */
  readonly tools?: () => readonly string[]
  readonly capabilities?: string
  /** Instructions in the response to `initialize`. Undefined: none. */
  readonly instructions?: () => string | undefined
  /** Handlers by method, usually `tools/call`. */
  readonly responses?: Readonly<Record<string, RawAnswer>>
  /** Receives every HTTP request first. Returns true when it has sent the response. */
  readonly before?: (req: IncomingMessage, res: ServerResponse, body: string) => boolean
  /** Called for each new session with the capabilities of its client. */
  readonly opened?: (session: string, capabilities: Readonly<Record<string, unknown>>) => void
  /** Default: true. `initialize` returns a session id. */
  readonly sessions?: boolean
  readonly port?: number
}

export interface RawBackend {
  readonly url: string
  readonly port: number
  readonly requests: RawRequest[]
  /** Known sessions. Clear the set to drop all of them. */
  readonly sessions: Set<string>
  /** Open GET streams. */
  readonly streams: Set<ServerResponse>
  /** Sends a message on every GET stream. */
  push(message: string): void
  close(): Promise<void>
}

const echoTool = '{"name":"echo","description":"Echoes","inputSchema":{"type":"object"}}'

export function textResult(text: string): string {
  return JSON.stringify({ content: [{ type: 'text', text }] })
}

export async function startRawBackend(options: RawBackendOptions = {}): Promise<RawBackend> {
  const requests: RawRequest[] = []
  const sessions = new Set<string>()
  const streams = new Set<ServerResponse>()
  const defaults: Readonly<Record<string, RawAnswer>> = {
    'tools/list': () => `{"tools":[${(options.tools?.() ?? [echoTool]).join(',')}]}`,
    'tools/call': ({ params }) => textResult(JSON.stringify(params['arguments'] ?? {})),
    ping: () => '{}',
  }

  async function handle(req: IncomingMessage, res: ServerResponse, body: string): Promise<void> {
    if (options.before?.(req, res, body)) return
    const session = req.headers['mcp-session-id']
    if (typeof session === 'string' && !sessions.has(session)) {
      res.writeHead(404).end()
      return
    }
    if (req.method === 'GET') {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      streams.add(res)
      res.once('close', () => streams.delete(res))
      return
    }
    if (req.method === 'DELETE') {
      sessions.delete(String(session))
      res.writeHead(200).end()
      return
    }
    const message = JSON.parse(body) as { id?: unknown; method?: string; params?: Record<string, unknown> }
    const request: RawRequest = {
      body,
      id: JSON.stringify(message.id),
      method: message.method ?? '',
      params: message.params ?? {},
      headers: req.headers,
      req,
      res,
    }
    requests.push(request)
    if (message.id === undefined || message.method === undefined) {
      res.writeHead(202).end()
      return
    }
    if (message.method === 'initialize') {
      initialize(request)
      return
    }
    const response = options.responses?.[message.method] ?? defaults[message.method]
    if (!response) {
      json(res, `{"jsonrpc":"2.0","id":${request.id},"error":{"code":-32601,"message":"Method not found"}}`)
      return
    }
    const result = await response(request)
    if (result !== undefined) json(res, `{"jsonrpc":"2.0","id":${request.id},"result":${result}}`)
  }

  function initialize({ id, res, params }: RawRequest): void {
    const session = randomUUID()
    sessions.add(session)
    options.opened?.(session, (params['capabilities'] ?? {}) as Record<string, unknown>)
    const capabilities = options.capabilities ?? '{"tools":{"listChanged":true}}'
    const said = options.instructions?.()
    const instructions = said === undefined ? '' : `,"instructions":${JSON.stringify(said)}`
    const result = `{"protocolVersion":"2025-11-25","capabilities":${capabilities},"serverInfo":{"name":"raw","version":"1"}${instructions}}`
    json(
      res,
      `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
      options.sessions === false ? {} : { 'mcp-session-id': session },
    )
  }

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      handle(req, res, Buffer.concat(chunks).toString()).catch(() => res.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    requests,
    sessions,
    streams,
    push(message) {
      for (const stream of streams) stream.write(`event: message\ndata: ${message}\n\n`)
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function json(res: ServerResponse, body: string, headers: Record<string, string> = {}): void {
  res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
}

/** Writes a response that never ends, at the pace of its reader, until the reader disconnects. */
export function writeWithoutEnd(res: ServerResponse, head: string): void {
  const chunk = 'x'.repeat(16_384)
  const more = (): void => {
    while (!res.destroyed && res.write(chunk));
  }
  res.on('drain', more)
  res.write(head)
  more()
}
