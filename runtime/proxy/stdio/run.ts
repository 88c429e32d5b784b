/**
 * `proxy stdio`: an MCP client that speaks on standard input and output uses a server that speaks HTTP.
 *
 * Between the two stands the transparent proxy itself, on a loopback port that only this process may use: login,
 * injected headers, session recovery and errors are the same as there. Nothing but messages goes to the output.
 * Source: spec document 1 (`proxy stdio`); MCP 2025-11-25, transports.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import type { ProxyConfig } from '../../config/index.ts'
import { type Authenticator, anonymousCaller } from '../../incoming/index.ts'
import { makeDispatcher } from '../../net/index.ts'
import { type RunParts, runProxy } from '../run.ts'
import { StdioClient } from './client.ts'
import { lineWriter, readLines } from './lines.ts'

export interface StdioOptions extends RunParts {
  /** Settings for the server; `targetUri` has its origin and query. */
  readonly config: ProxyConfig
  /** Path of the MCP endpoint. */
  readonly path: string
  readonly input: Readable
  readonly output: Writable
}

const maxMessageBytes = 8_388_608

/**
 * Runs until the input ends or the signal fires. Resolves true when the server was reached at all. Rejects when the
 * login failed.
 */
export async function runStdio(options: StdioOptions): Promise<boolean> {
  const { config, log, input, signal } = options
  const token = randomBytes(32).toString('base64url')
  const proxy = await runProxy(
    { ...config, host: '127.0.0.1', port: 0 },
    { ...options, incoming: () => onlyWith(token) },
  )
  const dispatcher = makeDispatcher({ origin: proxy.url, headersTimeoutMs: 0 })
  try {
    await proxy.ready
    const client = new StdioClient({
      dispatcher,
      endpoint: new URL(options.path, proxy.url),
      headers: ['Authorization', `Bearer ${token}`],
      deliver: lineWriter(options.output),
      log,
    })
    await pump(client, input, signal)
    await client.close()
    return client.reached
  } finally {
    await dispatcher.destroy()
    await proxy.close({ graceMs: 1_000 })
  }
}

/**
 * Sends line after line. Requests run side by side; an initialize and notifications are waited for, so that nothing
 * overtakes them. At the end of the input the answers still due are waited for. A first message that reaches nobody
 * ends it.
 */
async function pump(client: StdioClient, input: Readable, signal: AbortSignal | undefined): Promise<void> {
  const running = new Set<Promise<void>>()
  const stop = (): void => {
    input.destroy()
  }
  signal?.addEventListener('abort', stop, { once: true })
  try {
    for await (const line of readLines(input, maxMessageBytes)) {
      const sent = client.send(line)
      running.add(sent)
      void sent.finally(() => running.delete(sent))
      if (!client.reached || !line.includes('"id"')) await sent
      if (!client.reached) return
    }
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
  if (!signal?.aborted) await Promise.all(running)
}

/** Lets in who knows the token: this process. */
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
    answer: () => false,
    close: async () => {},
  }
}
