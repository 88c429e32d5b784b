/**
 * A full backend for tests, on a loopback port, with everything that the conformance suite requires of a server: in the
 * session era (SDK 1, `/mcp`, `/sse`), in the stateless era (SDK 2, `/mcp`), or both at one address.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { makeSessionServer } from './session-server.ts'
import { FixtureState } from './state.ts'
import { makeStatelessServer } from './stateless-server.ts'

export interface Fixture {
  /** URL of the MCP endpoint. */
  readonly url: string
  readonly sseUrl: string
  readonly state: FixtureState
  close(): Promise<void>
}

export interface FixtureOptions {
  /** Default: `session`. */
  readonly era?: 'session' | 'stateless' | 'both'
  /** Runs first for every request. Returns true when it has sent the response. */
  readonly before?: (req: IncomingMessage, res: ServerResponse) => boolean | Promise<boolean>
  /** Default: 0, any free port. */
  readonly port?: number
}

export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const era = options.era ?? 'session'
  const state = new FixtureState()
  const session = makeSessionServer(state)
  const stateless = makeStatelessServer(state)
  const server = createServer((req, res) => {
    state.requests.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers })
    const before = options.before?.(req, res) ?? false
    if (typeof before === 'boolean') {
      if (!before) handle(req, res)
      return
    }
    void before.then((isAnswered) => {
      if (!isAnswered) handle(req, res)
    })
  })
  function handle(req: IncomingMessage, res: ServerResponse): void {
    const path = (req.url ?? '/').split('?')[0] ?? '/'
    const modern =
      era === 'stateless' || (era === 'both' && req.headers['mcp-protocol-version'] === '2026-07-28')
    const handled = modern ? stateless.handle(req, res) : session.handle(req, res, path)
    handled.catch((error: unknown) => {
      if (!res.headersSent) res.writeHead(500)
      res.end(String(error))
    })
  }
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    sseUrl: `http://127.0.0.1:${port}/sse`,
    state,
    async close() {
      server.closeAllConnections()
      await Promise.all([session.close(), stateless.close(), new Promise((resolve) => server.close(resolve))])
    },
  }
}
