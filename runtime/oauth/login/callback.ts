/**
 * The local HTTP server that receives the redirect of a login, on every address that the browser may use for it.
 *
 * A browser resolves localhost to 127.0.0.1 or to ::1. Another program on one of these addresses could receive the
 * code, so both must be free. The server runs only during a login. It responds to redirects with an unknown state but
 * otherwise ignores them. Any web page can send such a redirect, and must not be able to end the login.
 * Source: RFC 8252 section 7.3; RFC 6749 section 10.12; docs/reference/specification/proxy-command.md
 * (--remote-auth-callback-port).
 */
import {
  Exchange,
  isLoopbackHost,
  listen,
  type Listener,
  type Log,
  pipeline,
  unbracket,
} from '../../net/index.ts'
import { isOurState } from '../authorization.ts'
import { showPage } from './pages.ts'

export interface Redirect {
  readonly params: URLSearchParams
  /** Shows the outcome in the browser. Only the first call has an effect. */
  finish(outcome: { readonly ok: boolean }): void
}

export interface Callback {
  readonly port: number
  readonly redirectUri: string
  /** Resolves to the redirect with this state. Rejects with the signal's reason. */
  wait(state: string, signal: AbortSignal): Promise<Redirect>
  close(): Promise<void>
}

export interface CallbackAddress {
  /** Host in the redirect URI: localhost, 127.0.0.1 or [::1]. Default: localhost. */
  readonly host?: string | undefined
  /** Default: /callback. */
  readonly path?: string | undefined
}

/**
 * Opens the server; port 0 selects a free port. Rejects with the system's error, which contains the address, when the
 * port is in use on any address.
 */
export async function openCallback(
  port: number,
  log: Log,
  { host = 'localhost', path: own = '/callback' }: CallbackAddress = {},
): Promise<Callback> {
  let waiting: { readonly state: string; readonly resolve: (redirect: Redirect) => void } | undefined

  function dispatch(exchange: Exchange): void {
    const { req, res, path, query } = exchange
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.writeHead(405, { Allow: 'GET', 'Content-Length': '0' }).end()
      return
    }
    if (path !== own || req.method === 'HEAD') return showPage(res, 'waiting')
    const params = new URLSearchParams(query)
    if (!waiting || !isLocal(req.headers.host) || !isOurState(params, waiting.state)) {
      log.debug('ignored a redirect that belongs to no login')
      return showPage(res, 'foreign')
    }
    const { resolve } = waiting
    waiting = undefined
    resolve({
      params,
      finish({ ok }) {
        if (!res.headersSent) showPage(res, ok ? 'done' : 'failed')
      },
    })
  }

  const handler = pipeline<Exchange>({ dispatch, recover: ({ res }) => res.destroy() }, Exchange)
  const listeners = await bindLoopback(host, port, { handler, log })
  const bound = listeners[0]?.port ?? port
  return {
    port: bound,
    redirectUri: `http://${host}:${bound}${own}`,
    wait(state, signal) {
      return new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const onAbort = (): void => {
          waiting = undefined
          reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
        }
        signal.addEventListener('abort', onAbort, { once: true })
        waiting = {
          state,
          resolve(redirect) {
            signal.removeEventListener('abort', onAbort)
            resolve(redirect)
          },
        }
      })
    },
    async close() {
      await Promise.all(listeners.map((listener) => listener.close({ graceMs: 1_000 })))
    },
  }
}

/**
 * Binds the same port on every loopback address of the host. On failure, binds nothing and rejects with the system's
 * error.
 */
async function bindLoopback(
  host: string,
  port: number,
  options: Pick<Parameters<typeof listen>[0], 'handler' | 'log'>,
  attempts = 10,
): Promise<readonly Listener[]> {
  const addresses = host === '127.0.0.1' || host === '[::1]' ? [unbracket(host)] : ['127.0.0.1', '::1']
  const listeners: Listener[] = []
  let missing: unknown
  for (const address of addresses) {
    try {
      listeners.push(await listen({ host: address, port: listeners[0]?.port ?? port, ...options }))
    } catch (error) {
      if (isMissingAddress(error)) {
        missing = error
        continue
      }
      await Promise.all(listeners.map((listener) => listener.close({ graceMs: 0 })))
      // A port that is free on one address may be in use on the other.
      if (port === 0 && attempts > 1) return bindLoopback(host, port, options, attempts - 1)
      throw error
    }
  }
  if (listeners.length === 0) throw missing
  return listeners
}

/**
 * True when the machine does not have the address, for instance without IPv6. Then no other program can listen there
 * either.
 */
function isMissingAddress(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'
}

/** Returns the reason why `openCallback` rejected, to show to the user. */
export function unavailablePort(error: unknown, port: number): string {
  if (!(error instanceof Error) || !('code' in error)) return `port ${port} is not available`
  const address = 'address' in error ? String(error.address) : ''
  const at = address === '' ? '' : ` on ${address.includes(':') ? `[${address}]` : address}`
  return error.code === 'EADDRINUSE'
    ? `port ${port} is in use by another program${at}`
    : `port ${port} is not available${at} (${String(error.code)})`
}

function isLocal(host: string | undefined): boolean {
  return host !== undefined && isLoopbackHost(host.replace(/:\d+$/, ''))
}
