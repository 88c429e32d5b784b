/**
 * Console login using the backend-for-frontend pattern: the server is the OAuth client and keeps the tokens; the
 * browser has only a cookie.
 *
 * `/login?to=` redirects to the issuer, which redirects to `/callback`. `/logout` ends the session and returns the
 * issuer's logout URL. A login is bound to the browser that started it. Operator actions require a login within the
 * last 15 minutes.
 * Source: RFC 9700; OAuth 2.0 for Browser-Based Applications (backend for frontend); OpenID Connect RP-Initiated Logout
 * 1.0.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  clearCookie,
  type Exchange,
  html,
  makeCaller,
  page,
  readCookie,
  sendBody,
  sendJson,
  setCookie,
  type Stage,
} from '../../net/index.ts'
import { isOurState, makeLoginSecrets, OAuthClientError, tokenRefusal } from '../../oauth/index.ts'
import type { Log } from '../../net/index.ts'
import type { Role } from '../api.ts'
import { checkFetchSite, checkWrite } from '../http/security.ts'
import type { Acted } from '../acted.ts'
import type { Issuer, SignedInUser } from './issuer.ts'
import { type ConsoleSession, LoginSessions } from './login-sessions.ts'
import { type PendingLogin, PendingLogins } from './pending-logins.ts'
import type { Roles } from './roles.ts'
import type { VisitorAccess, Visitor } from './visitor.ts'

const freshMs = 15 * 60_000
const pendingSec = 600
const maxTo = 1_024

export interface LoginOptions {
  readonly issuer: Issuer
  /** Issuer, as in the `iss` claim of ID tokens. */
  readonly issuerName: string
  /** Provider of the login. Closing the access closes the provider. */
  readonly roles: Roles
  /** The console's URL with its base path, without a trailing slash. */
  readonly publicUrl: string
  readonly now: () => number
  readonly log: Log
  readonly acted: Acted
}

export function loginAccess(options: LoginOptions): VisitorAccess {
  const { issuer, publicUrl, now, log, acted, roles: granted } = options
  const secure = publicUrl.startsWith('https:')
  const sessions = new LoginSessions(now)
  const pending = new PendingLogins(now)
  const sessionCookie = { name: 'gh-console', secure }
  const loginCookie = { name: 'gh-console-login', secure, maxAgeSec: pendingSec }

  async function visitorOf(id: string, session: ConsoleSession): Promise<Visitor> {
    const { caller, name, csrf, authenticatedAt } = session
    const roles = await granted.of(caller)
    return {
      user: { sub: caller.subject, ...(name === undefined ? {} : { name }) },
      roles,
      caller,
      csrf,
      freshLogin: now() - authenticatedAt < freshMs,
      // Ends open streams, including when the user loses the required roles.
      isLive: async () =>
        sessions.find(id, { touch: false }) !== undefined && isSame(await granted.of(caller), roles),
    }
  }

  async function visitor(exchange: Exchange): Promise<Visitor | undefined> {
    const id = readCookie(exchange, sessionCookie)
    const session = id === undefined ? undefined : sessions.find(id, { touch: true })
    return session && id !== undefined ? visitorOf(id, session) : undefined
  }

  async function login(exchange: Exchange): Promise<void> {
    requireMethod(exchange, 'GET')
    const query = new URLSearchParams(exchange.query)
    const again = query.get('again') === 'true'
    const secrets = makeLoginSecrets()
    const address = await issuer.begin(secrets, { again })
    const id = pending.begin({ secrets, again, to: pathIn(query.get('to')) })
    addCookie(exchange, setCookie(loginCookie, id))
    redirect(exchange, address)
  }

  async function callback(exchange: Exchange): Promise<void> {
    requireMethod(exchange, 'GET')
    const id = readCookie(exchange, loginCookie)
    addCookie(exchange, clearCookie(loginCookie))
    const login = id === undefined ? undefined : pending.take(id)
    const query = new URLSearchParams(exchange.query)
    // Accepts the response only if this browser started the login.
    if (!login || !isOurState(query, login.secrets.state)) {
      refuse(exchange, 400, 'This login was started in another browser, or more than ten minutes ago.')
      return
    }
    const signedIn = await issuer.finish(query, login.secrets)
    const before = readCookie(exchange, sessionCookie)
    if (before !== undefined) sessions.end(before)
    const facts = sessionFacts(signedIn, login, options)
    addCookie(exchange, setCookie(sessionCookie, sessions.open(facts)))
    acted(exchange, { type: 'console_login_completed', caller: facts.caller })
    redirect(exchange, `${publicUrl}${login.to}`)
  }

  async function logout(exchange: Exchange): Promise<void> {
    requireMethod(exchange, 'POST')
    checkFetchSite(exchange)
    const id = readCookie(exchange, sessionCookie)
    const session = id === undefined ? undefined : sessions.find(id, { touch: false })
    if (id === undefined || !session) throw new GatehouseError('UNAUTHENTICATED')
    checkWrite(exchange, await visitorOf(id, session))
    sessions.end(id)
    addCookie(exchange, clearCookie(sessionCookie))
    acted(exchange, { type: 'console_logout', caller: session.caller })
    const location = await issuer.logoutUrl(session.idToken, `${publicUrl}/`)
    sendJson(exchange.res, 200, { location: location ?? `${publicUrl}/` })
  }

  /** Renders errors as a page, because a user is waiting in the browser. */
  function shown(work: (exchange: Exchange) => Promise<void>): Stage<Exchange> {
    return async (exchange) => {
      try {
        await work(exchange)
      } catch (error) {
        if (!(error instanceof OAuthClientError)) throw error
        log.warn('console login failed', { err: error })
        const isRefused = isLoginRefusal(error)
        const failure = isRefused ? new GatehouseError('FORBIDDEN') : error
        acted(exchange, { type: 'console_login_failed', caller: undefined, error: failure })
        refuse(
          exchange,
          isRefused ? 403 : 502,
          isRefused
            ? 'The identity provider rejected the login.'
            : 'The login with the identity provider failed. Check its address and the client settings; the server log contains the error.',
        )
      }
    }
  }

  function refuse(exchange: Exchange, status: number, text: string): void {
    const { html: body, headers } = page(
      'Login failed',
      html`<h1>Login failed</h1><p>${text}</p><p><a href="${publicUrl}/login">Sign in again</a></p>`,
    )
    sendBody(exchange.res, status, 'text/html; charset=utf-8', body, headers)
  }

  return {
    anonymous: false,
    visitor,
    route(path) {
      if (path === '/login') return shown(login)
      if (path === '/callback') return shown(callback)
      return path === '/logout' ? logout : undefined
    },
    close: async () => granted.close(),
  }
}

function sessionFacts(
  { claims, subject, idToken, accessToken }: SignedInUser,
  { again }: PendingLogin,
  { issuerName, now }: LoginOptions,
) {
  const name = [claims['name'], claims['email']].find((text) => typeof text === 'string' && text !== '')
  /**
   * Without an authentication time, the issuer may have authenticated the user long ago, unless the login required a
   * prompt.
   */
  const authenticatedAt = (): number => {
    const authTime = claims['auth_time']
    if (typeof authTime === 'number') return Math.min(authTime * 1_000, now())
    return again ? now() : 0
  }
  return {
    caller: makeCaller({
      issuer: issuerName,
      subject,
      claims,
      ...(typeof name === 'string' ? { displayName: name } : {}),
      token: accessToken,
    }),
    name: typeof name === 'string' ? name : undefined,
    idToken,
    authenticatedAt: authenticatedAt(),
  }
}

function isSame(roles: readonly Role[], before: readonly Role[]): boolean {
  return roles.length === before.length && roles.every((role) => before.includes(role))
}

function requireMethod({ req }: Exchange, method: string): void {
  if (req.method !== method) throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: method } })
}

/** Returns a console path. Replaces a path that could lead to another site with the start page. */
function pathIn(to: string | null): string {
  const isPath =
    to !== null && to.length <= maxTo && /^\/(?![/\\])[\x21-\x7e]*$/.test(to) && !to.includes('\\')
  return isPath ? to : '/'
}

function addCookie({ res }: Exchange, value: string): void {
  res.appendHeader('Set-Cookie', value)
}

function redirect({ res }: Exchange, location: string): void {
  res.writeHead(303, { Location: location }).end()
}

/** Authorization response error codes that no user can cause. Source: RFC 6749 section 4.1.2.1. */
const settingsErrors: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_scope',
  'unsupported_response_type',
])

/**
 * Returns true when the provider rejects this user or this login. Any other error is caused by the provider or the
 * settings.
 */
function isLoginRefusal(error: OAuthClientError): boolean {
  const refusal = tokenRefusal(error)
  if (refusal !== 'request') return refusal === 'grant'
  // Authorization responses have no status, unlike token endpoint responses.
  return error.responseStatus === undefined && !settingsErrors.has(error.error ?? '')
}
