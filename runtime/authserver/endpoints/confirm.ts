/**
 * The page in the middle of a login: another user than expected must consent, or a provider could not be connected.
 *
 * Only the browser that began the login gets to see or answer it. Trying a provider again keeps what the others gave;
 * going on without it is allowed, because the first provider alone says who the user is.
 */
import type { Exchange } from '../../net/index.ts'
import { makeForm, readBrowser, readSignIn } from '../login/cookies.ts'
import { consentPage, providerPage } from '../login/pages.ts'
import { type AuthServerContext, upstreamNamed } from '../login/context.ts'
import { shownClient } from '../model/events.ts'
import type { Confirmation } from '../model/records.ts'
import {
  advance,
  errorRedirect,
  type LoginInProgress,
  type Next,
  startUpstreamStep,
} from '../login/login-flow.ts'
import { sendPage } from './responses.ts'
import { checkForm, chosenProviders, goneError, sendNext } from './consent.ts'
import { formOf, type Parameters, queryOf } from './form.ts'
import { sha256 } from '../model/identifiers.ts'

export async function showConfirmation(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const handle = queryOf(exchange).get('request') ?? ''
  const waiting = await context.state.confirmations.get(handle)
  if (!waiting || browserOf(exchange, waiting, context) === undefined) throw goneError()
  const form = makeForm(exchange, handle, context.keys(), context.urls.secure)
  const parts = { handle, form: form.field, action: context.urls.confirm }
  const page =
    waiting.failed === undefined
      ? consentPage(waiting.request, context, { ...parts, user: waiting.user })
      : providerPage(waiting, context, parts)
  sendPage(exchange, 200, page.html, { ...page.headers, 'Set-Cookie': [form.cookie] })
}

export async function submitConfirmation(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  const handle = form.get('request') ?? ''
  checkForm(exchange, handle, form, context)
  const waiting = await context.state.confirmations.take(handle)
  const browserId = waiting && browserOf(exchange, waiting, context)
  if (!waiting || browserId === undefined) throw goneError()
  const signedIn = readSignIn(exchange, context.urls.secure)
  sendNext(exchange, await decide(form, waiting, signedIn, context), browserId, context)
}

/** The browser's id when the login belongs to it. */
function browserOf(
  exchange: Exchange,
  waiting: Confirmation,
  context: AuthServerContext,
): string | undefined {
  const id = readBrowser(exchange, context.keys(), context.urls.secure)
  return id !== undefined && sha256(id) === waiting.browser ? id : undefined
}

async function decide(
  form: Parameters,
  waiting: Confirmation,
  signedIn: string | undefined,
  context: AuthServerContext,
): Promise<Next> {
  const { request, chosen, browser, obtained, user, failed } = waiting
  const action = form.get('action')
  const login: LoginInProgress = { request, chosen, browser, obtained, user }
  const { consentOf, approvedAtMs } = waiting
  const agreed = {
    ...(consentOf === undefined ? {} : { consentOf }),
    ...(approvedAtMs === undefined ? {} : { approvedAtMs }),
  }
  const about = { clientId: shownClient(request.clientId), userId: user.userId }
  if (failed === undefined) {
    if (action === 'approve') {
      context.emit({ type: 'consent_given', outcome: 'success', ...about })
      const approved = { chosen: chosenProviders(form, context), approvedAtMs: context.now() }
      return advance(context, { ...login, ...approved }, signedIn)
    }
  } else {
    const upstream = upstreamNamed(context, failed)
    if (action === 'retry' && upstream) {
      return { location: await startUpstreamStep(context, { ...login, ...agreed }, upstream) }
    }
    if (action === 'skip') {
      const rest = chosen.filter((name) => name !== failed)
      return advance(context, { ...login, ...agreed, chosen: rest }, signedIn)
    }
  }
  context.emit({ type: 'consent_refused', outcome: 'denied', ...about })
  return { location: errorRedirect(context, request, 'access_denied', 'the user refused') }
}
