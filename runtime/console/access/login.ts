/**
 * Signing in to the console: the server is the OAuth client and holds the tokens, the browser holds a cookie and nothing
 * else (backend for frontend).
 *
 * `/login?to=` leads to the issuer, `/callback` back from it, `/logout` ends the session here and says where it ends there.
 * A login belongs to the browser that began it. The actions of operators want a login of the last 15 minutes.
 * Source: RFC 9700; OAuth 2.0 for Browser-Based Applications (backend for frontend); OpenID Connect RP-Initiated Logout 1.0.
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
  /** As the ID tokens name it. */
  readonly issuerName: string
  /** Closed with the access. */
  readonly roles: Roles
  /** Address of the console with its base path, without a slash at the end. */
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
      // What somebody follows with roles that were since taken away ends as well.
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
    // Nothing of the response counts unless this browser asked for it.
    if (!login || !isOurState(query, login.secrets.state)) {
      refuse(exchange, 400, 'This login was not begun in this browser, or more than ten minutes ago.')
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

  /** Whoever signs in sees a page, never a problem document. */
  function shown(work: (exchange: Exchange) => Promise<void>): Stage<Exchange> {
    return async (exchange) => {
      try {
        await work(exchange)
      } catch (error) {
        if (!(error instanceof OAuthClientError)) throw error
        log.warn('a login to the console failed', { err: error })
        const isRefused = isLoginRefusal(error)
        const failure = isRefused ? new GatehouseError('FORBIDDEN') : error
        acted(exchange, { type: 'console_login_failed', caller: undefined, error: failure })
        refuse(
          exchange,
          isRefused ? 403 : 502,
          isRefused
            ? 'The identity provider refused the login.'
            : 'The identity provider could not be used. Its address, and the settings of the client there, may be wrong: the log of the server has the error.',
        )
      }
    }
  }

  function refuse(exchange: Exchange, status: number, text: string): void {
    const { html: body, headers } = page(
      'Signing in did not work',
      html`<h1>Signing in did not work</h1><p>${text}</p><p><a href="${publicUrl}/login">Sign in again</a></p>`,
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
  /** Without a time the issuer may have remembered the user from long ago, unless it was told to ask. */
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

/** A path of the console; anything that could lead elsewhere is the start page. */
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

/** Codes of an authorization response that no user can cause. Source: RFC 6749 section 4.1.2.1. */
const settingsErrors: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_scope',
  'unsupported_response_type',
])

/** True when the provider refuses this user or this login. Otherwise the provider or the settings have an error. */
function isLoginRefusal(error: OAuthClientError): boolean {
  const refusal = tokenRefusal(error)
  if (refusal !== 'request') return refusal === 'grant'
  // An authorization response, unlike a response of the token endpoint, has no status.
  return error.responseStatus === undefined && !settingsErrors.has(error.error ?? '')
}
