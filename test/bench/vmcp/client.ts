/** A minimal client for both eras: it sends requests as bytes through one pool of open connections. */
import { Pool } from 'undici'

export type Era = 'session' | 'stateless'

/** A request without its id, which changes for each call. */
export interface Sent {
  readonly headers: Readonly<Record<string, string>>
  /** Text after the id. */
  readonly rest: string
}

export interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

const BASE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Returns a request of either era; `session` is the id from `initialize`. */
export function requestOf(
  era: Era,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  session?: string,
): Sent {
  if (era === 'session') {
    const own = session === undefined ? {} : { 'mcp-session-id': session }
    return { headers: { ...BASE, ...own }, rest: restOf(method, params) }
  }
  const name = params['name']
  const headers = {
    ...BASE,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
  }
  return { headers, rest: restOf(method, { ...params, _meta: META }) }
}

function restOf(method: string, params: unknown): string {
  return `,${JSON.stringify({ method, params }).slice(1)}`
}

export function bodyOf({ rest }: Sent, id: number): string {
  return `{"jsonrpc":"2.0","id":${id}${rest}`
}

export function callOf(era: Era, tool: string, session?: string): Sent {
  return requestOf(era, 'tools/call', { name: tool, arguments: { text: 'x'.repeat(120) } }, session)
}

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
}

export class BenchClient {
  readonly url: URL
  readonly #pool: Pool
  readonly #headers: Sent['headers']
  #nextId = 1

  /** `headers` are added to every request. */
  constructor(url: string, connections = 64, headers: Sent['headers'] = {}) {
    this.url = new URL(url)
    this.#headers = headers
    this.#pool = new Pool(this.url.origin, { connections, headersTimeout: 60_000, bodyTimeout: 0 })
  }

  /** Resolves with the whole response; rejects when there is none. */
  send(sent: Sent): Promise<Received> {
    return this.#post(sent.headers, bodyOf(sent, this.#nextId++))
  }

  #post(headers: Sent['headers'], body: string): Promise<Received> {
    return new Promise((resolve, reject) => {
      let status = 0
      let received: Received['headers'] = {}
      const chunks: Buffer[] = []
      this.#pool.dispatch(
        { path: this.url.pathname, method: 'POST', headers: { ...headers, ...this.#headers }, body },
        {
          onRequestStart() {},
          onResponseStart(_controller, code, fields) {
            status = code
            received = fields
          },
          onResponseData(_controller, chunk) {
            chunks.push(chunk)
          },
          onResponseEnd() {
            resolve({ status, headers: received, body: Buffer.concat(chunks).toString('latin1') })
          },
          onResponseError(_controller, error) {
            reject(error)
          },
        },
      )
    })
  }

  /** Rejects unless the response is a result. */
  async result(sent: Sent): Promise<Received> {
    const received = await this.send(sent)
    if (received.status !== 200 || !received.body.includes('"result"'))
      throw new Error(`${received.status} ${received.body.slice(0, 300)}`)
    return received
  }

  /** Opens a session like a real client. Resolves with its id. */
  async openSession(): Promise<string> {
    const { headers } = await this.result(requestOf('session', 'initialize', INITIALIZE))
    const id = headers['mcp-session-id']
    if (typeof id !== 'string') throw new Error('no session id')
    const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    await this.#post({ ...BASE, 'mcp-session-id': id }, body)
    return id
  }

  /** Sends only `initialize`, like a client that leaves. Resolves with the response. */
  initialize(): Promise<Received> {
    return this.send(requestOf('session', 'initialize', INITIALIZE))
  }

  async openSessions(count: number, atOnce = 32): Promise<string[]> {
    const ids: string[] = []
    while (ids.length < count) {
      const batch = Math.min(atOnce, count - ids.length)
      ids.push(...(await Promise.all(Array.from({ length: batch }, () => this.openSession()))))
    }
    return ids
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}
