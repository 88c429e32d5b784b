/**
 * A page shown during a login when the provider signed in a different user, who must consent, or when a provider could
 * not be connected.
 *
 * Only the browser that started the login can see or answer it. A retry keeps the other providers' tokens. The login
 * may continue without the provider, because only the first provider identifies the user.
 */
import type { Exchange } from '../../net/index.ts'
import { type AuthServerContext, findUpstream } from '../login/context.ts'
import { makeForm, readBrowserId, readSignIn } from '../login/cookies.ts'
import { advanceLogin, type LoginRedirect, startUpstreamStep } from '../login/login-flow.ts'
import { consentPage, providerPage } from '../login/pages.ts'
import { makeEvent } from '../model/events.ts'
import { sha256 } from '../model/identifiers.ts'
import { expiredLoginError } from '../model/oauth-error.ts'
import type { Confirmation } from '../model/records.ts'
import { readChosenProviders, refuseConsent } from './consent.ts'
import { checkFormOrigin, type Parameters, readForm, readQuery } from './form.ts'
import { sendLoginRedirect, sendPage } from './responses.ts'

/** GET: shows the page. */
export async function showConfirmation(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const handle = readQuery(exchange).get('request') ?? ''
  const waiting = await context.state.confirmations.get(handle)
  if (!waiting || matchBrowser(exchange, waiting, context) === undefined) throw expiredLoginError()
  const form = makeForm(exchange, handle, context)
  const pageForm = { handle, form: form.field, action: context.urls.confirm }
  const page =
    waiting.failed === undefined
      ? consentPage(waiting.request, context, { ...pageForm, user: waiting.user, offered: waiting.offered })
      : providerPage({ ...waiting, failed: waiting.failed }, context, pageForm)
  sendPage(exchange, page, { headers: { 'Set-Cookie': [form.cookie] } })
}

/** POST: the user's answer. */
export async function submitConfirmation(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readForm(exchange)
  const handle = form.get('request') ?? ''
  checkFormOrigin(exchange, { form, subject: handle }, context)
  const waiting = await context.state.confirmations.take(handle)
  const browserId = waiting && matchBrowser(exchange, waiting, context)
  if (!waiting || browserId === undefined) throw expiredLoginError()
  const next = await applyAnswer(form, { waiting, signIn: readSignIn(exchange, context) }, context)
  sendLoginRedirect(exchange, { ...next, browserId }, context)
}

/** Returns the id of the browser that began the login; undefined for another browser. */
function matchBrowser(
  exchange: Exchange,
  waiting: Confirmation,
  context: AuthServerContext,
): string | undefined {
  const id = readBrowserId(exchange, context)
  return id !== undefined && sha256(id) === waiting.browser ? id : undefined
}

async function applyAnswer(
  form: Parameters,
  { waiting, signIn }: { readonly waiting: Confirmation; readonly signIn: string | undefined },
  context: AuthServerContext,
): Promise<LoginRedirect> {
  const { failed, ...login } = waiting
  const { request, user, chosen } = login
  const action = form.get('action')
  if (failed === undefined && action === 'approve') {
    context.emit(makeEvent('consent_given', { clientId: request.clientId, userId: user.userId }))
    const approval = { chosen: readChosenProviders(form, context), approvedAtMs: context.now() }
    return advanceLogin(context, { ...login, ...approval, consentOf: undefined }, signIn)
  }
  const upstream = failed === undefined ? undefined : findUpstream(context, failed)
  if (upstream && action === 'retry') return { location: await startUpstreamStep(context, login, upstream) }
  if (failed !== undefined && action === 'skip')
    return advanceLogin(context, { ...login, chosen: chosen.filter((name) => name !== failed) }, signIn)
  return { location: refuseConsent(request, context, user.userId) }
}
