/** A hand-written server with tools that have pages (MCP Apps), in either protocol era. */
import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AppServerOptions {
  readonly era: 'session' | 'stateless'
  /** Tools, without `inputSchema`. */
  readonly tools: readonly Record<string, unknown>[]
  /** Listed resources. */
  readonly resources?: readonly Record<string, unknown>[]
  readonly templates?: readonly Record<string, unknown>[]
  /** Contents by URI, listed or not. */
  readonly contents?: Readonly<Record<string, Record<string, unknown>>>
  /** Results of tools by name. Default: a text with the name of the tool and of the server. */
  readonly results?: Readonly<Record<string, Record<string, unknown>>>
  readonly prompt?: Record<string, unknown>
  readonly name: string
  /** Declared extensions. Default: MCP Apps. */
  readonly extensions?: Readonly<Record<string, unknown>>
  /** Results of additional methods. Undefined: the item does not exist. */
  readonly methods?: Readonly<
    Record<string, (params: Record<string, unknown>) => Record<string, unknown> | undefined>
  >
}

export interface AppServer {
  readonly url: string
  /** Received requests. */
  readonly requests: { readonly method: string; readonly params: Record<string, unknown> }[]
  readonly contents: Record<string, Record<string, unknown>>
  push(message: unknown): void
  close(): Promise<void>
}

const pageType = 'text/html;profile=mcp-app'

/** Returns a resource whose page is `html`. */
export function page(uri: string, html: string, ui?: Record<string, unknown>) {
  return { uri, mimeType: pageType, text: html, ...(ui && { _meta: { ui } }) }
}

export async function startAppServer(options: AppServerOptions): Promise<AppServer> {
  const { era, name, tools, resources = [], templates = [], results = {}, prompt, methods = {} } = options
  const contents = { ...options.contents }
  const requests: AppServer['requests'] = []
  const streams = new Set<ServerResponse>()
  const capabilities = {
    tools: {},
    resources: { subscribe: true },
    ...(prompt && { prompts: {} }),
    extensions: options.extensions ?? { 'io.modelcontextprotocol/ui': {} },
  }
  const serverInfo = { name, version: '1' }

  function resultOf(method: string, params: Record<string, unknown>): Record<string, unknown> | undefined {
    switch (method) {
      case 'initialize':
        return era === 'session' ? { protocolVersion: '2025-11-25', capabilities, serverInfo } : undefined
      case 'server/discover':
        return era === 'stateless'
          ? { supportedVersions: ['2026-07-28'], capabilities, ttlMs: 0, cacheScope: 'private' }
          : undefined
      case 'tools/list':
        return { tools: tools.map((tool) => ({ inputSchema: { type: 'object' }, ...tool })) }
      case 'resources/list':
        return { resources }
      case 'resources/templates/list':
        return { resourceTemplates: templates }
      case 'prompts/list':
        return { prompts: prompt ? [{ name: 'ask' }] : [] }
      case 'prompts/get':
        return { messages: [{ role: 'user', content: prompt }] }
      case 'resources/read': {
        const content = contents[String(params['uri'])]
        return content && { contents: [content] }
      }
      case 'tools/call': {
        const tool = String(params['name'])
        if (!tools.some((one) => one['name'] === tool)) return undefined
        return results[tool] ?? { content: [{ type: 'text', text: `${tool} of ${name}` }] }
      }
      case 'resources/subscribe':
      case 'resources/unsubscribe':
      case 'ping':
        return {}
      default:
        return methods[method]?.(params)
    }
  }

  const session = randomUUID()
  const server = createServer((req, res) => {
    if (req.method === 'GET') {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      streams.add(res)
      res.once('close', () => streams.delete(res))
      return
    }
    let body = ''
    req.on('data', (chunk: Buffer) => (body += chunk.toString()))
    req.on('end', () => {
      if (req.method === 'DELETE') return void res.writeHead(200).end()
      const {
        id,
        method,
        params = {},
      } = JSON.parse(body) as {
        id?: unknown
        method: string
        params?: Record<string, unknown>
      }
      if (id === undefined) return void res.writeHead(202).end()
      requests.push({ method, params })
      const result = resultOf(method, params)
      const known = result ?? {
        code: method === 'resources/read' || method in methods ? -32602 : -32601,
        message: 'not found',
      }
      const complete = era === 'stateless' && result ? { resultType: 'complete', ...known } : known
      res.writeHead(result || era === 'session' ? 200 : 404, {
        'content-type': 'application/json',
        ...(method === 'initialize' && { 'mcp-session-id': session }),
      })
      return void res.end(JSON.stringify({ jsonrpc: '2.0', id, [result ? 'result' : 'error']: complete }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    contents,
    push(message) {
      for (const stream of streams) stream.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
