/**
 * The local HTTP server that receives the redirect of a login, on every loopback address that the browser may connect
 * to.
 *
 * A browser resolves localhost to 127.0.0.1 or to ::1. Another program on one of these addresses could receive the
 * code, so the port must be free on both addresses. The server runs only during a login. It responds to redirects with
 * an unknown state but otherwise ignores them. Any web page can cause such a redirect and must not be able to end the
 * login.
 *
 * A login may be limited to browsers that open its entrance URL: a one-time ticket in this URL sets a cookie, and a
 * redirect without the cookie is ignored.
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
  randomBuffer,
  unbracket,
} from '../../net/index.ts'
import { isEqualSecret, isOurState } from '../authorization.ts'
import { showPage } from './pages.ts'

export interface Redirect {
  readonly params: URLSearchParams
  /** Shows the outcome in the browser. Only the first call has an effect. */
  finish(outcome: { readonly ok: boolean }): void
}

export interface Callback {
  readonly port: number
  readonly redirectUri: string
  /**
   * Limits the login to browsers that open the returned URL, which redirects to `target` once. The URL contains a
   * secret.
   */
  entrance(target: string): string
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

/** Entrance URLs that have not been opened yet. The oldest is dropped. */
const maxTickets = 16
const entrancePath = '/start'

interface Ticket {
  readonly secret: string
  readonly target: string
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

  /** Value of the cookie that a browser needs. Undefined: any browser may complete the login. */
  let browserSecret: string | undefined
  const tickets: Ticket[] = []

  /** Sets the cookie and redirects to the ticket's target. */
  function enter({ req, res, query }: Exchange): void {
    const given = new URLSearchParams(query).get('ticket') ?? ''
    const at = tickets.findIndex(({ secret }) => isEqualSecret(given, secret))
    const [ticket] = at < 0 || !isLocal(req.headers.host) ? [] : tickets.splice(at, 1)
    if (!ticket) return showPage(res, 'foreign')
    const cookie = `${cookieName(bound)}=${browserSecret}; Path=${own}; HttpOnly; SameSite=Lax`
    res.writeHead(303, {
      Location: ticket.target,
      'Set-Cookie': cookie,
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'Content-Length': '0',
    })
    res.end()
  }

  function dispatch(exchange: Exchange): void {
    const { req, res, path, query } = exchange
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.writeHead(405, { Allow: 'GET', 'Content-Length': '0' }).end()
      return
    }
    if (path === entrancePath && req.method === 'GET') return enter(exchange)
    if (path !== own || req.method === 'HEAD') return showPage(res, 'waiting')
    const params = new URLSearchParams(query)
    const isOurBrowser =
      browserSecret === undefined || hasCookie(req.headers.cookie, cookieName(bound), browserSecret)
    if (!waiting || !isOurBrowser || !isLocal(req.headers.host) || !isOurState(params, waiting.state)) {
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
    entrance(target) {
      browserSecret ??= randomBuffer(32).toString('base64url')
      const secret = randomBuffer(32).toString('base64url')
      tickets.push({ secret, target })
      if (tickets.length > maxTickets) tickets.shift()
      return `http://${host}:${bound}${entrancePath}?ticket=${secret}`
    },
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
 * True when the machine does not have the address, for instance without IPv6. In this case, no other program can listen
 * on the address.
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

/** A host's cookies are shared by all of its ports. */
function cookieName(port: number): string {
  return `gatehouse_login_${port}`
}

function hasCookie(header: string | undefined, name: string, value: string): boolean {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.some(
    (pair) => pair.startsWith(`${name}=`) && isEqualSecret(pair.slice(name.length + 1), value),
  )
}

function isLocal(host: string | undefined): boolean {
  return host !== undefined && isLoopbackHost(host.replace(/:\d+$/, ''))
}
