/**
 * The local HTTP server that a login's redirect comes back to, on both loopback addresses.
 *
 * Open only while a login runs. A redirect whose state is not ours is answered and otherwise ignored: any web page can
 * send one, and it must not be able to end the login.
 * Source: RFC 8252 section 7.3; RFC 6749 section 10.12; docs/specification/proxy-command.md (--remote-auth-callback-port).
 */
import { Exchange, isLoopbackHost, type Listener, listen, type Log, pipeline } from '../../net/index.ts'
import { isOurState } from '../authorization.ts'
import { showPage } from './pages.ts'

export interface Redirect {
  readonly params: URLSearchParams
  /** Shows the browser how it ended, the first time. */
  finish(outcome: { readonly ok: boolean }): void
}

export interface Callback {
  readonly port: number
  readonly redirectUri: string
  /** Resolves with the redirect that carries this state; rejects with the signal's reason. */
  wait(state: string, signal: AbortSignal): Promise<Redirect>
  close(): Promise<void>
}

export interface CallbackPlace {
  /** As the redirect URI names it: localhost, 127.0.0.1 or [::1]. Default: localhost. */
  readonly host?: string | undefined
  /** Default: /callback. */
  readonly path?: string | undefined
}

/** Rejects with the system's error when the port is taken. 0 takes a free one. */
export async function openCallback(
  port: number,
  log: Log,
  { host = 'localhost', path: own = '/callback' }: CallbackPlace = {},
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
      log.debug('a redirect that belongs to no login was ignored')
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

  const handler = pipeline<Exchange>(
    { dispatch, recover: ({ res }) => res.destroy() },
    (req, res) => new Exchange(req, res),
  )
  const four = await listen({ host: '127.0.0.1', port, handler, log })
  // A browser may take localhost for ::1; a machine without IPv6 has only the other one.
  const six: Listener | undefined = await listen({ host: '::1', port: four.port, handler, log }).catch(
    () => undefined,
  )
  return {
    port: four.port,
    redirectUri: `http://${host}:${four.port}${own}`,
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
      await Promise.all([four.close({ graceMs: 1_000 }), six?.close({ graceMs: 1_000 })])
    },
  }
}

function isLocal(host: string | undefined): boolean {
  return host !== undefined && isLoopbackHost(host.replace(/:\d+$/, ''))
}
