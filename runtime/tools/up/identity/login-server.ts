/**
 * Serves the login pages and the identity provider of `gatehouse up --login` on a loopback port. The virtual server
 * relays the pages to browsers.
 *
 * Each form or passkey response belongs to a login, whose id is in the path and in a cookie of the browser that began
 * the login. Each enrolment form belongs to the key in its enrolment link. The server rejects requests from other
 * sites.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import { GatehouseError, isFields } from '../../../../schemas/index.ts'
import {
  Exchange,
  type HtmlPage,
  listen,
  readBody,
  sendBody,
  sendJson,
  sendProblem,
  silentLog,
} from '../../../net/index.ts'
import { Attempts } from './attempts.ts'
import {
  continuePage,
  enrolledPage,
  enrolmentPage,
  enrolPath,
  loginPage,
  messagePage,
  scriptPath,
} from './pages.ts'
import { passkeyScript } from './passkey-script.ts'
import { Passkeys } from './passkeys.ts'
import { hashPassword, isPassword, passwordLength } from './passwords.ts'
import { interactionPath, makeProvider, type ProviderOptions, sessionCookie } from './provider.ts'
import type { LoginUser, Users } from './users.ts'

export interface LoginServerOptions extends ProviderOptions {
  /** Address that MCP clients connect to. */
  readonly address: string
}

export interface LoginServer {
  /** Origin on the loopback interface. */
  readonly url: string
  close(): Promise<void>
}

const maxBodyBytes = 65_536

export async function startLoginServer(options: LoginServerOptions): Promise<LoginServer> {
  const pages = new LoginPages(options)
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    handler: (req, res) => {
      pages.answer(req, res).catch((error: unknown) => sendProblem(res, error))
    },
  })
  return { url: listener.url, close: () => listener.close({ graceMs: 500 }) }
}

/** Returns the address of a user's enrolment page. */
export function enrolmentUrl(origin: string, key: string): string {
  return `${origin}${enrolPath}?key=${key}`
}

class LoginPages {
  readonly #options: LoginServerOptions
  readonly #users: Users
  readonly #provider: Provider
  readonly #provide: (req: IncomingMessage, res: ServerResponse) => Promise<void>
  readonly #passkeys: Passkeys
  readonly #attempts = new Attempts()

  constructor(options: LoginServerOptions) {
    this.#options = options
    this.#users = options.users
    this.#provider = makeProvider(options)
    this.#provide = this.#provider.callback()
    this.#passkeys = new Passkeys(options.origin, options.users)
  }

  async answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // Clients cannot choose the address that the provider's redirects contain.
    const { host, protocol } = new URL(this.#options.origin)
    req.headers['x-forwarded-host'] = host
    req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
    req.headers.cookie = withoutSession(req.headers.cookie)
    const exchange = new Exchange(req, res)
    const { path } = exchange
    if (path === scriptPath && req.method === 'GET')
      return sendBody(res, 200, 'text/javascript; charset=utf-8', passkeyScript, noStore)
    const [, login, action = ''] =
      /^\/login\/interaction\/([\w-]{1,64})(\/options|\/passkey)?$/.exec(path) ?? []
    const enrolment = path.startsWith(enrolPath) ? path.slice(enrolPath.length) : undefined
    if (login === undefined && enrolment === undefined) return this.#provide(req, res)
    if (req.method === 'POST') {
      this.#refuseOtherSites(req)
      await readBody(exchange, { maxBytes: maxBodyBytes })
    } else if (req.method !== 'GET') throw new GatehouseError('METHOD_NOT_ALLOWED')
    const step = `${req.method} ${action || (enrolment ?? '')}`
    return login === undefined ? this.#enrol(exchange, step) : this.#signIn(exchange, login, step)
  }

  #refuseOtherSites({ headers }: IncomingMessage): void {
    const { origin, 'sec-fetch-site': site } = headers
    // Pages do not send a referrer, so browsers send the origin "null" for their forms.
    const isForeign = origin !== undefined && origin !== 'null' && origin !== this.#options.origin
    if (isForeign || (site !== undefined && site !== 'same-origin')) throw new GatehouseError('ORIGIN_DENIED')
  }

  async #signIn(exchange: Exchange, login: string, step: string): Promise<void> {
    const { req, res } = exchange
    const uid = await this.#provider.interactionDetails(req, res).then(
      (details) => details.uid,
      () => undefined,
    )
    if (uid !== login) return sendPage(res, 400, expired)
    switch (step) {
      case 'GET ':
        return this.#showLogin(res, 200, login)
      case 'POST ':
        return this.#checkPassword(exchange, login)
      case 'POST /options':
        jsonOf(exchange)
        return sendJson(res, 200, await this.#passkeys.signInOptions(login), noStore)
      case 'POST /passkey': {
        const user = await this.#passkeys.signIn(login, jsonOf(exchange)['response'])
        if (!user) return sendJson(res, 403, { problem: 'This passkey was not accepted.' }, noStore)
        return sendJson(res, 200, { location: await this.#finish(exchange, user) }, noStore)
      }
      default:
        throw new GatehouseError('NOT_FOUND')
    }
  }

  async #checkPassword(exchange: Exchange, login: string): Promise<void> {
    const { res } = exchange
    const form = formOf(exchange)
    const name = (form.get('name') ?? '').trim().toLowerCase().slice(0, 64)
    const password = form.get('password') ?? ''
    const wait = this.#attempts.waitSeconds(name)
    if (wait > 0) {
      res.setHeader('Retry-After', String(wait))
      return this.#showLogin(res, 429, login, {
        name,
        problem: `Too many wrong passwords. Try again in ${wait} seconds, or use a passkey.`,
      })
    }
    const forget = this.#attempts.begin(name)
    const user = this.#users.named(name)
    const isTooLong = password.length > passwordLength.max
    const isRight = await isPassword(isTooLong ? '' : password, user?.password).catch(busyAsUndefined)
    if (isRight === undefined) {
      forget()
      return this.#showLogin(res, 503, login, { name, problem: busy })
    }
    // While the hash was being computed, the user may have been removed or may have changed the password.
    const isCurrent = user !== undefined && this.#users.withId(user.id)?.password === user.password
    if (!isCurrent || !isRight)
      return this.#showLogin(res, 403, login, { name, problem: 'The name or the password is wrong.' })
    this.#attempts.succeeded(name)
    return sendPage(res, 200, continuePage(await this.#finish(exchange, user)))
  }

  #finish({ req, res }: Exchange, { id }: LoginUser): Promise<string> {
    return this.#provider.interactionResult(req, res, { login: { accountId: id, remember: false } })
  }

  #showLogin(
    res: ServerResponse,
    status: number,
    login: string,
    more: { readonly name?: string; readonly problem?: string } = {},
  ): void {
    const { address, origin } = this.#options
    sendPage(res, status, loginPage({ address, origin, path: interactionPath(login), ...more }))
  }

  async #enrol(exchange: Exchange, step: string): Promise<void> {
    const { res, query } = exchange
    switch (step) {
      case 'GET ':
        return this.#showEnrolment(res, 200, new URLSearchParams(query).get('key') ?? '')
      case 'GET /done':
        return sendPage(res, 200, enrolledPage(this.#options.address))
      case 'POST ':
        return this.#savePassword(exchange)
      case 'POST /options': {
        const key = textOf(jsonOf(exchange)['key'])
        const user = this.#users.invited(key)
        if (!user) return sendJson(res, 403, { problem: usedLink }, noStore)
        return sendJson(res, 200, await this.#passkeys.registrationOptions(user, key), noStore)
      }
      case 'POST /passkey':
        return this.#savePasskey(exchange)
      default:
        throw new GatehouseError('NOT_FOUND')
    }
  }

  async #savePassword(exchange: Exchange): Promise<void> {
    const { res } = exchange
    const form = formOf(exchange)
    const key = form.get('key') ?? ''
    const password = form.get('password') ?? ''
    const { min, max } = passwordLength
    if (!this.#users.invited(key)) return sendPage(res, 403, messagePage('This link does not work', usedLink))
    const { length } = password
    if (length < min || length > max)
      return this.#showEnrolment(res, 422, key, `The password must have ${min} to ${max} characters.`)
    if (password !== form.get('repeated'))
      return this.#showEnrolment(res, 422, key, 'The passwords do not match.')
    const hashed = await hashPassword(password).catch(busyAsUndefined)
    if (hashed === undefined) return this.#showEnrolment(res, 503, key, busy)
    const user = this.#users.enrol(key, { password: hashed })
    if (!user) return sendPage(res, 403, messagePage('This link does not work', usedLink))
    return sendPage(res, 200, enrolledPage(this.#options.address))
  }

  async #savePasskey(exchange: Exchange): Promise<void> {
    const { res } = exchange
    const { key: given, response } = jsonOf(exchange)
    const key = textOf(given)
    const passkey = this.#users.invited(key) && (await this.#passkeys.register(key, response))
    const user = passkey && this.#users.enrol(key, { passkey })
    if (!user) return sendJson(res, 403, { problem: 'The passkey could not be saved.' }, noStore)
    return sendJson(res, 200, { location: `${enrolPath}/done` }, noStore)
  }

  #showEnrolment(res: ServerResponse, status: number, key: string, problem?: string): void {
    const user = this.#users.invited(key)
    if (!user) return sendPage(res, 403, messagePage('This link does not work', usedLink))
    const { address, origin } = this.#options
    sendPage(res, status, enrolmentPage({ user: user.name, key, address, origin, problem }))
  }
}

const busy = 'Too many people are signing in with a password. Try again, or use a passkey.'

/** Converts the error OVERLOADED to undefined, so that the page can report it. */
function busyAsUndefined(error: unknown): undefined {
  if (!(error instanceof GatehouseError && error.code === 'OVERLOADED')) throw error
}

const usedLink =
  'The link was used before, has expired, or was replaced by a newer link. Ask for a new link: gatehouse up user add NAME.'
const expired = messagePage(
  'This sign-in has expired',
  'Return to your MCP client and connect again. Your browser must accept cookies.',
)

/** Every login requires the passkey or the password, so a browser can switch between users without a session. */
function withoutSession(cookies: string | undefined): string | undefined {
  return cookies
    ?.split(';')
    .filter((pair) => !pair.trim().startsWith(sessionCookie))
    .join(';')
}

const noStore = { 'Cache-Control': 'no-store' }

function sendPage(res: ServerResponse, status: number, { html, headers }: HtmlPage): void {
  sendBody(res, status, 'text/html; charset=utf-8', html, {
    ...headers,
    ...noStore,
    'Referrer-Policy': 'no-referrer',
  })
}

function formOf({ req, body }: Exchange): URLSearchParams {
  if (!/^application\/x-www-form-urlencoded\b/i.test(req.headers['content-type'] ?? ''))
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE')
  return new URLSearchParams(body.toString('utf8'))
}

function jsonOf({ req, body }: Exchange): Readonly<Record<string, unknown>> {
  if (!/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE')
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    if (isFields(value)) return value
  } catch {
    // The code below rejects the value.
  }
  throw new GatehouseError('BAD_REQUEST')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
