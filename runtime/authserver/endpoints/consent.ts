/**
 * The consent page: asks the user before anything is sent upstream, and binds the login to this browser.
 *
 * The provider sees only this server, which acts as its client for all clients that register here. Without this page,
 * an untrusted client could use the user's existing login with the provider (confused deputy). The page is on the
 * callback's host, because the browser must send the binding cookie there.
 * Source: MCP 2025-11-25 security best practices; RFC 9700 sections 4.7 and 4.16.
 */
import type { Exchange } from '../../net/index.ts'
import { findConsent } from '../login/consents.ts'
import { type AuthServerContext, isRequired } from '../login/context.ts'
import { makeForm, readBrowserId, readSignIn } from '../login/cookies.ts'
import { advanceLogin, consentRequired, makeErrorRedirect } from '../login/login-flow.ts'
import { consentPage } from '../login/pages.ts'
import { makeEvent } from '../model/events.ts'
import { randomId, sha256 } from '../model/identifiers.ts'
import { expiredLoginError } from '../model/oauth-error.ts'
import type { AuthRequest, LoginInProgress } from '../model/records.ts'
import { checkFormOrigin, type Parameters, readForm, readQuery } from './form.ts'
import { sendLoginRedirect, sendPage, sendRedirect } from './responses.ts'

type Approval = Pick<LoginInProgress, 'chosen' | 'consentOf' | 'approvedAtMs'>

/** GET: shows the page, or continues when there is nothing to ask. */
export async function showConsent(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const handle = readQuery(exchange).get('request') ?? ''
  const request = await context.state.requests.get(handle)
  if (!request) throw expiredLoginError()
  const decision = await decideWithoutPage(exchange, request, context)
  if (decision === undefined) {
    const form = makeForm(exchange, handle, context)
    const page = consentPage(request, context, { handle, form: form.field, action: context.urls.consent })
    return sendPage(exchange, page, { headers: { 'Set-Cookie': [form.cookie] } })
  }
  const taken = await context.state.requests.take(handle)
  if (!taken) throw expiredLoginError()
  if (typeof decision === 'string') sendRedirect(exchange, decision)
  else await startLogin(exchange, { request: taken, ...decision }, context)
}

/**
 * Returns the remembered approval, or the URL that a silent request is redirected to; undefined when the consent page
 * must be shown.
 */
async function decideWithoutPage(
  exchange: Exchange,
  request: AuthRequest,
  context: AuthServerContext,
): Promise<Approval | string | undefined> {
  if (!context.config.consent) return { chosen: context.upstreams.map(({ name }) => name) }
  const isSilent = request.prompt.includes('none')
  const signIn = readSignIn(exchange, context)
  const known = signIn === undefined ? undefined : await context.state.signIns.get(signIn)
  if (!known) {
    const error = { error: 'login_required', description: 'no user is signed in' } as const
    return isSilent ? makeErrorRedirect(context, request, error) : undefined
  }
  const consent = await findConsent(context.state, known.userId, request)
  if (!consent) return isSilent ? makeErrorRedirect(context, request, consentRequired) : undefined
  if (request.prompt.includes('consent')) return undefined
  return { chosen: consent.providers, consentOf: known.userId }
}

/** POST: the user's answer. */
export async function submitConsent(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readForm(exchange)
  const handle = form.get('request') ?? ''
  checkFormOrigin(exchange, { form, subject: handle }, context)
  const request = await context.state.requests.take(handle)
  if (!request) throw expiredLoginError()
  if (form.get('action') !== 'approve') return sendRedirect(exchange, refuseConsent(request, context))
  context.emit(makeEvent('consent_given', request))
  const approval = { chosen: readChosenProviders(form, context), approvedAtMs: context.now() }
  await startLogin(exchange, { request, ...approval }, context)
}

/** Reports that the user rejected the request. Returns the URL to send the browser to. */
export function refuseConsent(request: AuthRequest, context: AuthServerContext, userId?: string): string {
  context.emit(makeEvent('consent_refused', { clientId: request.clientId, userId }))
  const error = { error: 'access_denied', description: 'the user rejected the request' } as const
  return makeErrorRedirect(context, request, error)
}

/** Returns the required providers and the providers that the user selected. */
export function readChosenProviders(form: Parameters, context: AuthServerContext): readonly string[] {
  const selected = form.all('provider')
  return context.upstreams
    .map(({ name }) => name)
    .filter((name) => isRequired(context, name) || selected.includes(name))
}

async function startLogin(
  exchange: Exchange,
  approved: Approval & Pick<LoginInProgress, 'request'>,
  context: AuthServerContext,
): Promise<void> {
  // Sets the cookie only after the approval. A cookie set before the approval would bind a browser whose user has not
  // approved anything.
  const browserId = readBrowserId(exchange, context) ?? randomId()
  const login = { ...approved, browser: sha256(browserId), obtained: [] }
  const next = await advanceLogin(context, login, readSignIn(exchange, context))
  sendLoginRedirect(exchange, { ...next, browserId }, context)
}
