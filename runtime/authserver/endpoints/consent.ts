/**
 * The consent page: asks the user before anything goes upstream, and binds the login to this browser.
 *
 * This server is one client to the provider, for every client that registers here. Without this page, an untrusted client's
 * client could ride on a login that the user already has at the provider (confused deputy). It lives on the host of
 * the callback, because the binding cookie must come back there.
 * Source: MCP 2025-11-25 security best practices; RFC 9700 sections 4.7 and 4.16.
 */
import type { Exchange } from '../../net/index.ts'
import {
  browserCookie,
  isOwnForm,
  makeForm,
  newBrowser,
  readBrowser,
  readSignIn,
  signInCookie,
} from '../login/cookies.ts'
import { findConsent } from '../login/consents.ts'
import { consentPage } from '../login/pages.ts'
import { type AuthServerContext, isRequired } from '../login/context.ts'
import { shownClient } from '../model/events.ts'
import type { AuthRequest } from '../model/records.ts'
import { advance, errorRedirect, type LoginInProgress, type Next } from '../login/login-flow.ts'
import { sendPage, sendRedirect } from './responses.ts'
import { formOf, type Parameters, queryOf } from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256 } from '../model/identifiers.ts'

/** The user is told this whenever a handle leads nowhere; whether it ever existed is nobody's business. */
export function goneError(): OAuthError {
  return new OAuthError(
    'invalid_request',
    'this login has expired or was already used. Go back to your client and start again.',
  )
}

/** GET: the page, or straight on when there is nothing to ask. */
export async function showConsent(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const handle = queryOf(exchange).get('request') ?? ''
  const request = await context.state.requests.get(handle)
  if (!request) throw goneError()
  const skip = await maySkip(exchange, request, context)
  if (skip !== undefined) {
    const taken = await context.state.requests.take(handle)
    if (!taken) throw goneError()
    if (typeof skip === 'string') sendRedirect(exchange, skip)
    else await goOn(exchange, taken, skip, context)
    return
  }
  const form = makeForm(exchange, handle, context.keys(), context.urls.secure)
  const page = consentPage(request, context, { handle, form: form.field, action: context.urls.consent })
  sendPage(exchange, 200, page.html, { ...page.headers, 'Set-Cookie': [form.cookie] })
}

interface Skip {
  readonly chosen: readonly string[]
  readonly consentOf?: string
}

/** How to go on without asking; a string is where to send the browser instead; undefined: ask. */
async function maySkip(
  exchange: Exchange,
  request: AuthRequest,
  context: AuthServerContext,
): Promise<Skip | string | undefined> {
  const all = context.upstreams.map((upstream) => upstream.name)
  if (!context.config.consent) return { chosen: all }
  const silent = request.prompt.includes('none')
  const signIn = readSignIn(exchange, context.urls.secure)
  const known = signIn === undefined ? undefined : await context.state.signIns.get(signIn)
  if (known === undefined) {
    return silent ? errorRedirect(context, request, 'login_required', 'nobody is signed in') : undefined
  }
  const consent = await findConsent(context.state, known.userId, request)
  if (consent === undefined) {
    return silent
      ? errorRedirect(context, request, 'consent_required', 'consent has not been given')
      : undefined
  }
  return request.prompt.includes('consent')
    ? undefined
    : { chosen: consent.providers, consentOf: known.userId }
}

/** POST: the user's answer. */
export async function submitConsent(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  const handle = form.get('request') ?? ''
  checkForm(exchange, handle, form, context)
  const request = await context.state.requests.take(handle)
  if (!request) throw goneError()
  const about = { clientId: shownClient(request.clientId) }
  if (form.get('action') !== 'approve') {
    context.emit({ type: 'consent_refused', outcome: 'denied', ...about })
    sendRedirect(exchange, errorRedirect(context, request, 'access_denied', 'the user refused'))
    return
  }
  context.emit({ type: 'consent_given', outcome: 'success', ...about })
  const approved = { chosen: chosenProviders(form, context), approvedAtMs: context.now() }
  await goOn(exchange, request, approved, context)
}

/** A form counts only from the page that this browser was shown, sent by that page itself. */
export function checkForm(
  exchange: Exchange,
  subject: string,
  form: Parameters,
  context: AuthServerContext,
): void {
  const { origin } = exchange.req.headers
  const site = exchange.req.headers['sec-fetch-site']
  // Pages are sent without referrer, so browsers say "null" here for our own forms too; the token decides then.
  const foreign = origin !== undefined && origin !== 'null' && origin !== context.urls.pageOrigin
  const own = isOwnForm(exchange, subject, form.get('form') ?? '', context.keys(), context.urls.secure)
  if (foreign || (site !== undefined && site !== 'same-origin') || !own) {
    throw new OAuthError(
      'access_denied',
      'the form did not come from the page that was shown in this browser',
    )
  }
}

/** The providers that cannot be left out, and those that were ticked. */
export function chosenProviders(form: Parameters, context: AuthServerContext): readonly string[] {
  const ticked = form.all('provider')
  return context.upstreams
    .map(({ name }) => name)
    .filter((name) => isRequired(context, name) || ticked.includes(name))
}

async function goOn(
  exchange: Exchange,
  request: AuthRequest,
  agreed: Pick<LoginInProgress, 'chosen' | 'consentOf' | 'approvedAtMs'>,
  context: AuthServerContext,
): Promise<void> {
  const { secure } = context.urls
  const keys = context.keys()
  // Set only now: a cookie from before approval would bind a browser that agreed to nothing.
  const browserId = readBrowser(exchange, keys, secure) ?? newBrowser()
  const login = { request, ...agreed, browser: sha256(browserId), obtained: [] }
  const next = await advance(context, login, readSignIn(exchange, secure))
  sendNext(exchange, next, browserId, context)
}

/** Sends the browser where its login goes on, with the cookies that go with it. */
export function sendNext(
  exchange: Exchange,
  next: Next,
  browserId: string,
  context: AuthServerContext,
): void {
  const { secure } = context.urls
  const keys = context.keys()
  const cookies = [
    browserCookie(browserId, keys, secure),
    ...(next.signIn === undefined ? [] : [signInCookie(next.signIn, secure)]),
  ]
  sendRedirect(exchange, next.location, { 'Set-Cookie': cookies })
}
