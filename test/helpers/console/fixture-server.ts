/**
 * A server that serves the console's API with given data, for states that are hard to create with the real one: each
 * role, an ended session, hostile texts, an interrupted stream. It sends the same security headers as the real one.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import type { Test } from 'tap'
import { bundleConsole, type ConsoleSizes } from '../../../manifests/bundle/console.ts'
import type { StreamEvent, TryEvent } from '../../../runtime/console/api.ts'
import { responseHeaders } from '../../../runtime/console/http/security.ts'
import type { FixtureData } from './fixture-data.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

export interface SentRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/**
 * Handles an API request. A value is sent as JSON, a number is the status of a problem, and undefined means no content.
 */
export type Handler = (request: SentRequest, res: ServerResponse) => unknown

export interface ConsoleFixture {
  /** Address of the first page. */
  readonly url: string
  /** Tests can replace the data at any time. */
  data: FixtureData
  /** Handlers by method and path below `api/v1/`, such as `POST tries`. They take precedence over the data. */
  readonly handlers: Map<string, Handler>
  readonly requests: SentRequest[]
  /** CSRF values of the sign-out requests. */
  readonly logouts: unknown[]
  readonly sizes: ConsoleSizes
  /** Sends an event to every page that reads the stream. */
  push(...events: readonly StreamEvent[]): void
  /** Resolves once a page reads the stream. */
  streaming(): Promise<void>
  /** Closes every connection, and each new one until `comeBack` is called. */
  cutOff(): void
  comeBack(): void
}

type Scope = Pick<Test, 'teardown'>

export async function startConsoleFixture(
  t: Scope,
  data: FixtureData,
  basePath = '',
): Promise<ConsoleFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
  const { sizes } = await bundleConsole(resolve(import.meta.dirname, '../../..'), folder)
  const streams = new Set<ServerResponse>()
  let readers: (() => void)[] = []
  let off = false
  const handlers = new Map<string, Handler>()
  const requests: SentRequest[] = []
  const logouts: unknown[] = []

  const server = createServer((req, res) => {
    if (off) {
      req.socket.destroy()
      return
    }
    respond(req, res).catch((error: unknown) => res.destroy(error as Error))
  })

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? '/', 'http://fixture')
    const path = url.pathname.slice(basePath.length)
    for (const [name, value] of Object.entries(responseHeaders)) res.setHeader(name, value)
    if (path.startsWith('/api/v1/')) {
      let body = ''
      for await (const chunk of req.setEncoding('utf8')) body += chunk
      const request = {
        method: req.method ?? '',
        path: path.slice(8) + url.search,
        headers: req.headers,
        body,
      }
      requests.push(request)
      api(request, url, res)
      return
    }
    const name = path === '/' ? 'index.html' : path.slice(1)
    if (name === 'logout' && req.method === 'POST') {
      logouts.push(req.headers['x-gatehouse-csrf'])
      res.writeHead(204).end()
      return
    }
    if (name === 'login') {
      res.end(`login ${url.searchParams.get('to')}`)
      return
    }
    res.setHeader('content-type', types[extname(name)] ?? 'text/plain')
    try {
      res.end(readFileSync(join(folder, name), 'utf8').replaceAll('{{base}}', `${basePath}/`))
    } catch {
      res.writeHead(404).end()
    }
  }

  function api(request: SentRequest, url: URL, res: ServerResponse): void {
    const path = url.pathname.slice(basePath.length + 8)
    const handler = handlers.get(`${request.method} ${path}`)
    if (!handler && path === 'stream') {
      openStream(res)
      streams.add(res)
      res.on('close', () => streams.delete(res))
      for (const ready of readers) ready()
      readers = []
      return
    }
    const value = handler ? handler(request, res) : fixture.data[path]
    if (res.headersSent || res.writableEnded) return
    if (value === undefined) res.writeHead(handler ? 204 : 404).end()
    else if (typeof value === 'number') problem(res, value)
    else res.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  }

  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  let id = 0
  const fixture: ConsoleFixture = {
    url: `http://127.0.0.1:${port}${basePath}/`,
    data,
    handlers,
    requests,
    logouts,
    sizes,
    push(...events) {
      for (const event of events) {
        id += 1
        for (const res of streams) writeEvent(res, event, String(id))
      }
    },
    streaming: () => (streams.size > 0 ? Promise.resolve() : new Promise((done) => readers.push(done))),
    cutOff() {
      off = true
      server.closeAllConnections()
    },
    comeBack() {
      off = false
    },
  }
  return fixture
}

/** Starts a response of server-sent events. */
export function openStream(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n')
}

export function writeEvent(res: ServerResponse, event: StreamEvent | TryEvent, id?: string): void {
  res.write(
    `event: ${event.type}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`,
  )
}

const codes: Readonly<Record<number, readonly [string, string]>> = {
  401: ['UNAUTHENTICATED', 'sign in to the console'],
  403: ['FORBIDDEN', 'this needs the permission of another role'],
  404: ['NOT_FOUND', 'not found'],
  503: ['UNAVAILABLE', 'too many readers'],
}

function problem(res: ServerResponse, status: number): void {
  const [code, detail] = codes[status] ?? ['INTERNAL', 'internal error']
  res.writeHead(status, { 'content-type': 'application/problem+json' })
  res.end(JSON.stringify({ title: code, status, code, detail }))
}
