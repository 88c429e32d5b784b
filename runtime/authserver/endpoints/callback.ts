/**
 * The callback of every upstream: completes one upstream step of a login, or connects an account.
 *
 * The step's record is removed, so each response is valid only once. The response must come from the requested
 * provider, in the browser that started the login. The provider's module verifies the response. Text from the provider
 * is only logged, never sent to the client.
 * Source: RFC 6749 section 4.1.2, RFC 9207, RFC 9700 sections 4.4 (mix-up) and 4.7 (CSRF); OpenID Connect Core 3.1.2.5.
 */
import type { Exchange } from '../../net/index.ts'
import { OAuthClientError } from '../../oauth/index.ts'
import { type AuthServerContext, findUpstream, nowSec } from '../login/context.ts'
import { readBrowserId, readSignIn } from '../login/cookies.ts'
import { advanceLogin, handleUpstreamFailure, type LoginRedirect } from '../login/login-flow.ts'
import { makeEvent } from '../model/events.ts'
import { sha256 } from '../model/identifiers.ts'
import { offeredProviders } from '../model/offered.ts'
import { expiredLoginError, OAuthError } from '../model/oauth-error.ts'
import type { UpstreamConnection, UpstreamStep } from '../model/records.ts'
import type { FinishedLogin, Identity, LoginProof, Upstream } from '../upstream/upstream.ts'
import { userOf } from '../upstream/user.ts'
import { finishConnection, type UpstreamResponse } from './accounts.ts'
import { sendLoginRedirect } from './responses.ts'

export async function handleCallback(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const parameters = new URLSearchParams(exchange.query)
  const waiting = await takeWaiting(parameters, context)
  const browserId = checkBrowser(exchange, waiting, context)
  const upstream = findUpstream(context, waiting.provider)
  if (!upstream) throw new OAuthError('server_error', 'the upstream provider is no longer configured')
  const finish = async (proof: LoginProof): Promise<FinishedLogin> => {
    checkSender({ path: exchange.path, iss: parameters.get('iss') }, upstream, context)
    return upstream.finish(parameters, proof)
  }
  const response = { exchange, upstream, finish }
  const next =
    'request' in waiting
      ? await finishUpstreamStep(waiting, response, context)
      : { location: await finishConnection(waiting, response, context) }
  sendLoginRedirect(exchange, { ...next, browserId }, context)
}

/** Removes and returns the record for this response: an upstream step, or an account that is being connected. */
async function takeWaiting(
  parameters: URLSearchParams,
  { state: records }: AuthServerContext,
): Promise<UpstreamStep | UpstreamConnection> {
  const [state = '', ...more] = parameters.getAll('state')
  if (state === '' || more.length > 0) {
    throw new OAuthError('invalid_request', 'the response from the sign-in service does not identify a login')
  }
  const waiting = (await records.upstreamSteps.take(state)) ?? (await records.connections.take(state))
  if (!waiting) throw expiredLoginError()
  return waiting
}

/** Returns the id of the browser that started the login. Throws OAuthError access_denied for another browser. */
function checkBrowser(
  exchange: Exchange,
  { browser, provider }: Pick<UpstreamStep, 'browser' | 'provider'>,
  context: AuthServerContext,
): string {
  const id = readBrowserId(exchange, context)
  if (id !== undefined && sha256(id) === browser) return id
  context.log.warn('a login was continued in another browser', { upstream: provider })
  throw new OAuthError(
    'access_denied',
    'this login was started in another browser, or this browser does not accept cookies. Start again in one browser.',
  )
}

/**
 * Prevents mix-up (RFC 9700 section 4.4): a code from one provider must not be sent to another provider. A redirect URI
 * or an `iss` that belongs to another provider reveals a mix-up, even when the expected provider has not advertised an
 * issuer.
 */
function checkSender(
  { path, iss }: { readonly path: string; readonly iss: string | null },
  upstream: Upstream,
  { config, upstreams }: AuthServerContext,
): void {
  const owners = config.upstreams.filter(({ redirectUri }) => new URL(redirectUri).pathname === path)
  const isElsewhere = owners.length > 0 && !owners.some(({ name }) => name === upstream.name)
  const isForeign = iss !== null && upstream.issuer !== iss && upstreams.some(({ issuer }) => issuer === iss)
  if (isElsewhere || isForeign)
    throw new OAuthClientError('protocol', 'the response came from another provider')
}

/** Adds the provider's tokens to the login; the first provider also adds the user. */
async function finishUpstreamStep(
  step: UpstreamStep,
  { exchange, finish }: UpstreamResponse,
  context: AuthServerContext,
): Promise<LoginRedirect> {
  const { provider, codeVerifier, nonce, startedAtMs, ...login } = step
  const { request, obtained } = login
  const isFirst = login.user === undefined
  let finished: FinishedLogin
  try {
    finished = await finish({
      codeVerifier,
      nonce,
      maxAgeSec: isFirst ? request.maxAgeSec : undefined,
      notBeforeSec: isFirst && request.prompt.includes('login') ? Math.floor(startedAtMs / 1000) : undefined,
    })
  } catch (error) {
    return { location: await handleUpstreamFailure(context, login, { provider, error }) }
  }
  const { identity, tokens } = finished
  const user = login.user ?? userOf(context.config.issuer, { provider, identity }, nowSec(context))
  const offered = isFirst ? selectProviders(provider, identity, context) : login.offered
  const { clientId } = request
  context.emit(makeEvent('login_completed', { clientId, userId: user.userId, upstream: provider }))
  const others = obtained.filter((other) => other.provider !== provider)
  const signIn = readSignIn(exchange, context)
  return advanceLogin(context, { ...login, user, offered, obtained: [...others, tokens] }, signIn)
}

/** Applies the filter to the user's groups. A misspelled claim would otherwise withhold providers silently. */
function selectProviders(
  upstream: string,
  { groups = [] }: Identity,
  { config: { upstreamFilter: filter }, upstreams, log }: AuthServerContext,
): readonly string[] | undefined {
  if (filter && groups.length === 0)
    log.info('the provider reported no groups; the default upstreams apply', {
      upstream,
      claim: filter.claim,
    })
  return offeredProviders(filter, upstreams, groups)
}
