/**
 * A session-era backend that sends messages outside of its responses: it holds calls until the test releases them, and
 * sends messages on the GET stream of one session, where they belong to no request.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import {
  type RawBackend,
  type RawBackendOptions,
  startRawBackend,
  textResult,
} from '../../mcp/raw-backend.ts'

/** A call that has arrived. */
export interface HeldCall {
  /** Mark of the call in its arguments. */
  readonly mark: string
  readonly session: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly res: ServerResponse
  /** Responds with the mark. */
  respond(): void
}

/** Response to a request of the backend. */
export interface Reply {
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

export interface AsideBackend extends RawBackend {
  /** Resolves with the call with this mark once it has arrived. */
  call(mark: string): Promise<HeldCall>
  /** Calls that have arrived so far, by mark. */
  readonly calls: readonly HeldCall[]
  /** Sends a message on the GET stream of a session. */
  say(session: string, message: string): Promise<void>
  /** Sends a request on the GET stream of a session. Resolves with the response. */
  ask(session: string, method: string): Promise<Reply>
  /** A request that the test writes to any stream, and its response. */
  question(method: string, text: string): { readonly message: string; readonly reply: Promise<Reply> }
  /** Resolves once a message with this method has arrived. */
  heard(method: string): Promise<void>
}

/** `tools/call` waits for `respond` if its argument `hold` is set. Otherwise it responds at once. */
export async function startAsideBackend(options: RawBackendOptions = {}): Promise<AsideBackend> {
  const calls: HeldCall[] = []
  const replies = new Map<string, (reply: Reply) => void>()
  const wakers = new Set<() => void>()
  const wake = (): void => {
    for (const waker of wakers) waker()
  }
  let questions = 0
  const until = async <T>(find: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        const waker = (): void => {
          wakers.delete(waker)
          resolve()
        }
        wakers.add(waker)
      })
    }
  }
  const backend: RawBackend = await startRawBackend({
    capabilities: '{"tools":{},"logging":{}}',
    ...options,
    responses: {
      'logging/setLevel': () => '{}',
      'tools/call'({ params, headers, res, id }) {
        const args = (params['arguments'] ?? {}) as { mark?: string; hold?: boolean }
        const mark = args.mark ?? ''
        const respond = (): void => {
          const body = `{"jsonrpc":"2.0","id":${id},"result":${textResult(mark)}}`
          if (res.headersSent) res.end(`data: ${body}\n\n`)
          else res.writeHead(200, { 'content-type': 'application/json' }).end(body)
        }
        calls.push({ mark, session: String(headers['mcp-session-id']), headers, res, respond })
        setImmediate(wake)
        return args.hold ? undefined : textResult(mark)
      },
      ...options.responses,
    },
    before(req, res, body) {
      setImmediate(wake)
      if (options.before?.(req, res, body)) return true
      const message = (body === '' ? {} : JSON.parse(body)) as Reply & { id?: string; method?: string }
      const waiting = message.method === undefined ? replies.get(String(message.id)) : undefined
      if (!waiting) return false
      res.writeHead(202).end()
      waiting(message)
      return true
    },
  })
  const streamOf = (session: string): Promise<ServerResponse> =>
    until(() => [...backend.streams].find(({ req }) => req.headers['mcp-session-id'] === session))
  const say = async (session: string, message: string): Promise<void> => {
    const stream = await streamOf(session)
    if (!stream.write(`data: ${message}\n\n`)) await once(stream, 'drain')
  }
  const question: AsideBackend['question'] = (method, text) => {
    const id = `aside-${++questions}`
    const { promise, resolve } = Promise.withResolvers<Reply>()
    replies.set(id, resolve)
    const params = { message: text, requestedSchema: { type: 'object', properties: {} } }
    return { message: JSON.stringify({ jsonrpc: '2.0', id, method, params }), reply: promise }
  }
  return {
    ...backend,
    calls,
    call: (mark) => until(() => calls.find((call) => call.mark === mark)),
    say,
    question,
    async ask(session, method) {
      const { message, reply } = question(method, 'secret of one user')
      await say(session, message)
      return reply
    },
    heard: (method) =>
      until(() => (backend.requests.some((request) => request.method === method) ? true : undefined)).then(
        () => undefined,
      ),
  }
}

/** Returns a log message of a backend. */
export function logMessage(data: string): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level: 'error', data },
  })
}
