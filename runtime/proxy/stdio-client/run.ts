/**
 * `proxy stdio`: connects an MCP client on standard input and output to an HTTP server.
 *
 * Runs the transparent proxy on a loopback port that only this process can use, so that login, injected headers,
 * redirects and session recovery work as in the proxy. Only messages are written to the output.
 * Source: docs/reference/specification/proxy-command.md (`proxy stdio`); MCP 2025-11-25 and 2026-07-28, transports.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import type { ProxySettings } from '../../config/index.ts'
import { type Authenticator, anonymousCaller } from '../../incoming/index.ts'
import { makeDispatcher } from '../../net/index.ts'
import { runProxy } from '../run/run.ts'
import type { RunParts } from '../run/run-parts.ts'
import { AnyTransport } from './any-transport.ts'
import { RawBridge } from './bridge.ts'
import type { TransportEvents } from './call.ts'
import { EraTranslation } from './era-translation.ts'
import { Http, maxMessageBytes } from './http.ts'
import { makeLineWriter } from './lines.ts'
import { refuseRequests } from './refuse-requests.ts'

export interface StdioOptions extends RunParts {
  /** Settings for the server; `targetUri` contains the server's origin and query. */
  readonly config: ProxySettings
  /** Path of the MCP endpoint. */
  readonly path: string
  readonly input: Readable
  readonly output: Writable
  /** How long to wait for pending responses after the input ends. Default 30 s. */
  readonly drainMs?: number
}

/**
 * Runs until the input ends, the output closes, or the signal fires. Resolves to false when the first message could not
 * be delivered. Rejects when the login fails.
 */
export async function runStdio(options: StdioOptions): Promise<boolean> {
  const { config, log } = options
  const token = randomBytes(32).toString('base64url')
  const writer = makeLineWriter(options.output)
  const proxy = await runProxy(
    { ...config, host: '127.0.0.1', port: 0 },
    { ...options, incoming: () => onlyWith(token), maxBodyBytes: maxMessageBytes },
  )
  // The proxy enforces the server's time limit.
  const dispatcher = makeDispatcher({ origin: proxy.url, headersTimeoutMs: 0 })
  try {
    await proxy.ready.catch(async (error: unknown) => {
      await refuseRequests(options.input, writer, error)
      throw error
    })
    const endpoint = new URL(proxy.url)
    endpoint.pathname = options.path
    const http = new Http({ dispatcher, endpoint, headers: ['Authorization', `Bearer ${token}`], log })
    const shared = {
      transport: (events: TransportEvents) => new AnyTransport(http, events),
      log,
      signal: options.signal ?? new AbortController().signal,
    }
    const eras = new EraTranslation({
      writer,
      log,
      run: (input, own) => new RawBridge({ ...shared, input, writer: own, drainMs: 0 }).run(),
    })
    const drainMs = options.drainMs ?? 30_000
    const bridge = new RawBridge({ ...shared, input: options.input, writer, drainMs, eras })
    await bridge.run()
    return !bridge.unreachable
  } finally {
    await dispatcher.destroy()
    await proxy.close({ graceMs: 1_000 })
  }
}

/** Accepts only requests that contain the token, which only this process has. */
function onlyWith(token: string): Authenticator {
  const expected = Buffer.from(`Bearer ${token}`)
  const caller = anonymousCaller()
  function authenticate(value: string | undefined): typeof caller {
    const given = Buffer.from(value ?? '')
    if (given.length === expected.length && timingSafeEqual(given, expected)) return caller
    throw new GatehouseError('FORBIDDEN', { detail: 'this port belongs to another program' })
  }
  return {
    stage(exchange) {
      exchange.caller = authenticate(exchange.req.headers.authorization)
    },
    route: () => undefined,
    authenticate,
    challenge: () => undefined,
    sendChallenge: () => false,
    close: async () => {},
  }
}
