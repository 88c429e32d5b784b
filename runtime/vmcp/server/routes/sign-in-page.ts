/**
 * The path `/sign-in/{backend}` starts the user's login at a backend and redirects the browser. The path requires the
 * key, the server's own host name, and an allowed origin. Neither a web page nor another user can therefore start a
 * login.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { html, type OriginCheck, page, sendBody, type Stage } from '../../../net/index.ts'
import type { SignInStep } from '../../../outgoing/index.ts'
import { signInPath, type SignIns } from '../../backends/sign-ins.ts'
import type { VmcpExchange } from '../../model/exchange.ts'

const texts = {
  done: ['You are signed in', 'You can close this window.'],
  failed: [
    'The login failed',
    'The server that you are signing in to is unavailable or sent an invalid response. The gatehouse log contains the reason. Open the address again to retry.',
  ],
  wait: [
    'The login has not started',
    'Another program is signing in to this server, or the server is slow. Open the address again in a moment.',
  ],
  locked: [
    'Start this login from your terminal',
    'Open the address that gatehouse shows in your terminal, or run "gatehouse tools list". The address contains a key, so only you can sign in.',
  ],
} as const

/** Returns the stage for a login's path. Returns undefined for all other paths. */
export function signInRoute(
  signIns: SignIns | undefined,
  path: string,
  originCheck: () => OriginCheck | undefined,
): Stage<VmcpExchange> | undefined {
  if (!signIns || !path.startsWith(signInPath)) return undefined
  return async (exchange) => {
    const { req, query } = exchange
    if (req.method !== 'GET') throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET' } })
    const check = originCheck()
    if (!check) throw new GatehouseError('SHUTTING_DOWN')
    check.check(exchange)
    const backend = decodedName(path.slice(signInPath.length))
    if (!signIns.isKey(new URLSearchParams(query).get('key') ?? '')) return show(exchange, 403, 'locked')
    const step = await signIns.begin(backend)
    if (!step) throw new GatehouseError('NOT_FOUND')
    if (step.kind === 'open') redirect(exchange, step)
    else show(exchange, step.kind === 'done' ? 200 : 502, step.kind)
  }
}

function decodedName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

const privateHeaders = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' } as const

function redirect({ res }: VmcpExchange, { url }: Extract<SignInStep, { readonly kind: 'open' }>): void {
  res.writeHead(303, { Location: url, 'Content-Length': '0', ...privateHeaders }).end()
}

function show({ res }: VmcpExchange, status: number, name: keyof typeof texts): void {
  const [title, text] = texts[name]
  const { html: body, headers } = page(title, html`<h1>${title}</h1>\n<p>${text}</p>`)
  sendBody(res, status, 'text/html; charset=utf-8', body, {
    ...headers,
    ...privateHeaders,
    'X-Frame-Options': 'DENY',
  })
}
