/** A backend of either era, or over HTTP+SSE, that records every message. The name of a tool selects its behaviour. */
import { once, EventEmitter } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { headersText, Tape } from './tape.ts'

export type BackendKind = 'session' | 'stateless' | 'sse'

export interface RecordedBackend {
  readonly url: string
  readonly tape: Tape
  /** Resolves when the next call of `wait` or `hold` has arrived. */
  waiting(): Promise<unknown>
  /** Resolves at the next cancellation. */
  cancelled(): Promise<unknown>
  /** Lets the tools `wait` and `hold` return. */
  release(): void
  close(): Promise<void>
}

interface Rpc {
  readonly id?: unknown
  readonly method?: string
  readonly params?: ReturnType<typeof JSON.parse>
}

const tools = ['plain', 'stream', 'ask', 'wait', 'hold', 'broken', 'large']
const capabilities = { tools: {}, logging: {} }
const info = { name: 'recorded', version: '1.0.0' }
const question = {
  method: 'elicitation/create',
  params: {
    message: 'Which color?',
    requestedSchema: { type: 'object', properties: { color: { type: 'string' } } },
  },
}
const textOf = (text: string) => ({ content: [{ type: 'text', text }] })

export async function startRecordedBackend(kind: BackendKind): Promise<RecordedBackend> {
  const tape = new Tape()
  const events = new EventEmitter()
  const isStateless = kind === 'stateless'
  const complete = isStateless ? { resultType: 'complete' } : {}
  /** Stream of the HTTP+SSE session. */
  const streams = new Map<string, ServerResponse>()
  let sessions = 0

  function write(res: ServerResponse, message: object, id?: string): void {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message })
    tape.add(`sends ${text}`)
    res.write(`event: message\n${id === undefined ? '' : `id: ${id}\n`}data: ${text}\n\n`)
  }

  async function call({ id, params }: Rpc, out: Out): Promise<object | undefined> {
    const token = params['_meta']?.progressToken
    const progress = (step: number) =>
      out.send({
        method: 'notifications/progress',
        params: { progressToken: token, progress: step, total: 2 },
      })
    switch (params['name']) {
      case 'stream':
        progress(1)
        out.send({ method: 'notifications/message', params: { level: 'info', logger: 'tool', data: 'half' } })
        progress(2)
        return textOf('streamed')
      case 'ask': {
        if (isStateless) {
          const answers = params['inputResponses']
          if (answers) return textOf(`answered ${JSON.stringify(answers)}`)
          return {
            resultType: 'input_required',
            inputRequests: { color: question },
            requestState: 'backend-state',
          }
        }
        out.send({ id: 'own-question', ...question })
        const [answer] = await once(events, 'answer')
        return textOf(`answered ${JSON.stringify(answer)}`)
      }
      case 'wait':
      case 'hold': {
        if (params['name'] === 'wait') progress(1)
        const stop = new AbortController()
        const cancelled = once(events, 'cancelled', { signal: stop.signal }).then(() => undefined)
        const released = once(events, 'released', { signal: stop.signal }).then(() => textOf('released'))
        for (const one of [cancelled, released]) one.catch(() => {})
        events.emit('waiting')
        const result = await Promise.race([cancelled, released])
        stop.abort()
        return result
      }
      case 'broken':
        events.once('resumed', (res: ServerResponse) => {
          write(res, { id, result: textOf('resumed') }, 'own-2')
          res.end()
        })
        out.breakOff()
        return undefined
      case 'large':
        return textOf('x'.repeat(300_000))
      default:
        return textOf('plain')
    }
  }

  function resultOf({ method, params }: Rpc): object | undefined {
    if (method === (isStateless ? 'initialize' : 'server/discover')) return undefined
    if (method === 'initialize')
      return { protocolVersion: params?.['protocolVersion'], capabilities, serverInfo: info }
    if (method === 'server/discover')
      return {
        ...complete,
        supportedVersions: ['2026-07-28'],
        capabilities,
        _meta: { 'io.modelcontextprotocol/serverInfo': info },
      }
    if (method === 'tools/list')
      return { ...complete, tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }
    return complete
  }

  async function handle(req: IncomingMessage, res: ServerResponse, body: string): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://backend')
    const own = streams.get(searchParams.get('session') ?? '')
    if (req.method === 'GET' && kind === 'sse') {
      const session = `own-session-${++sessions}`
      streams.set(session, res)
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(`event: endpoint\ndata: /messages?session=${session}\n\n`)
      return
    }
    const resumedAt = req.headers['last-event-id']
    if (req.method === 'GET') {
      if (resumedAt !== undefined) tape.add(`receives GET ${headersText(Object.entries(req.headers))}`)
      if (isStateless) return void res.writeHead(405).end()
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      if (resumedAt !== undefined) events.emit('resumed', res)
      return
    }
    if (req.method === 'DELETE') return void res.writeHead(200).end()
    const message = JSON.parse(body) as Rpc & { result?: unknown }
    tape.add(`receives POST ${pathname} ${headersText(Object.entries(req.headers))}\n  ${body}`)
    if (message.method === undefined || message.id === undefined) {
      res.writeHead(202).end()
      if (message.method === 'notifications/cancelled') events.emit('cancelled')
      if (message.method === undefined) events.emit('answer', message.result)
      return
    }
    if (message.method !== 'tools/call') {
      const result = resultOf(message)
      const error = { code: -32601, message: 'Method not found' }
      const reply = JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) })
      if (own) {
        res.writeHead(202).end()
        own.write(`event: message\ndata: ${reply}\n\n`)
      } else {
        const session =
          message.method === 'initialize' ? { 'mcp-session-id': `own-session-${++sessions}` } : {}
        res.writeHead(200, { 'content-type': 'application/json', ...session })
        res.end(reply)
      }
      return
    }
    await respond(message, res, own)
  }

  async function respond(message: Rpc, res: ServerResponse, own: ServerResponse | undefined): Promise<void> {
    const name = message.params?.['name']
    if (own) res.writeHead(202).end()
    const isStream = own !== undefined || /^(stream|ask|wait|hold|broken)$/.test(String(name))
    let target = own ?? res
    if (name === 'wait') events.once('resumed', (resumed: ServerResponse) => void (target = resumed))
    if (!own) res.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
    if (!own && isStateless)
      res.once('close', () => {
        if (res.writableEnded) return
        tape.add('the stream is closed by the gateway')
        events.emit('cancelled')
      })
    const out: Out = {
      send: (sent) => write(target, sent, kind === 'session' && name === 'wait' ? 'own-1' : undefined),
      breakOff() {
        tape.add('breaks the stream')
        res.write('id: own-1\nretry: 1\ndata: \n\n')
        res.end()
      },
    }
    const result = await call(message, out)
    if (!result) {
      if (!own) res.end()
      return
    }
    const response = { id: message.id, result: { ...complete, ...result } }
    if (isStream) write(target, response)
    else {
      const text = JSON.stringify({ jsonrpc: '2.0', ...response })
      tape.add(`sends ${text}`)
      res.write(text.slice(0, 100_000))
      res.write(text.slice(100_000))
    }
    if (!own) target.end()
  }

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => void handle(req, res, Buffer.concat(chunks).toString()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}${kind === 'sse' ? '/sse' : '/mcp'}`,
    tape,
    waiting: () => once(events, 'waiting'),
    cancelled: () => once(events, 'cancelled'),
    release: () => void events.emit('released'),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Out {
  send(message: object): void
  /** Ends the stream after an event id. */
  breakOff(): void
}
