/** A minimal HTTP server on a loopback port, for responses and errors that no real server returns on demand. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly bytes: Buffer
  /** The body, parsed as a form. */
  readonly form: URLSearchParams
}

export interface Loopback {
  readonly url: string
  readonly port: number
  readonly seen: readonly SeenRequest[]
  close(): Promise<void>
}

export type PeerResponse =
  | {
      readonly status?: number
      readonly headers?: Readonly<Record<string, string | string[]>>
      /** A string is sent unchanged; any other value as JSON. */
      readonly body?: unknown
    }
  /** Cuts the connection. */
  | 'cut'

/** Starts a server. `handle` returns every response. */
export async function startLoopback(
  handle: (request: SeenRequest) => PeerResponse | Promise<PeerResponse>,
): Promise<Loopback> {
  const seen: SeenRequest[] = []
  const server = createServer((req, res) => {
    void respond(req, res)
  })

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    await once(req, 'end')
    const bytes = Buffer.concat(parts)
    const body = bytes.toString()
    const url = new URL(req.url ?? '/', 'http://loopback')
    const request: SeenRequest = {
      method: req.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: req.headers,
      body,
      bytes,
      form: new URLSearchParams(body),
    }
    seen.push(request)
    const response = await handle(request)
    if (response === 'cut') {
      req.socket.destroy()
      return
    }
    const isText = typeof response.body === 'string' || response.body === undefined
    res.writeHead(response.status ?? 200, {
      ...(isText ? {} : { 'content-type': 'application/json' }),
      ...response.headers,
    })
    res.end(isText ? response.body : JSON.stringify(response.body))
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
