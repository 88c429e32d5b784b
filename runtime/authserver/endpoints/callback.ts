/**
 * Where every upstream sends the browser back to: one upstream step of a login ends here.
 *
 * The upstream step's record is taken, so a response counts once. It must come in the browser that began the login, and from the
 * upstream that was asked. What the upstream said is verified by the upstream's own module; its texts go to the log, never
 * to the client.
 * Source: RFC 6749 section 4.1.2, RFC 9207, RFC 9700 sections 4.4 (mix-up) and 4.7 (CSRF); OpenID Connect Core 3.1.2.5.
 */
import type { Exchange } from '../../net/index.ts'
import { readBrowser, readSignIn } from '../login/cookies.ts'
import { type AuthServerContext, nowSec, upstreamNamed } from '../login/context.ts'
import { shownClient } from '../model/events.ts'
import { OAuthClientError } from '../../oauth/index.ts'
import type { UpstreamConnection, UpstreamStep } from '../model/records.ts'
import { advance, upstreamStepFailed, type Next, withUpstreamStep } from '../login/login-flow.ts'
import { userOf } from '../upstream/user.ts'
import type { Finished, LoginProof, Upstream } from '../upstream/upstream.ts'
import { finishConnection } from './accounts.ts'
import { goneError, sendNext } from './consent.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256 } from '../model/identifiers.ts'

export async function callback(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const response = { path: exchange.path, parameters: new URLSearchParams(exchange.query) }
  const waiting = await takeWaiting(response.parameters, context)
  const browserId = checkBrowser(exchange, waiting, context)
  const upstream = upstreamNamed(context, waiting.provider)
  if (!upstream) throw new OAuthError('server_error', 'the upstream provider is no longer configured')
  const finish = async (proof: LoginProof): Promise<Finished> => {
    checkSender(response, upstream, context)
    return upstream.finish(response.parameters, proof)
  }
  const next =
    'request' in waiting
      ? await finishUpstreamStep(waiting, finish, readSignIn(exchange, context.urls.secure), context)
      : { location: await finishConnection(exchange, waiting, upstream, finish, context) }
  sendNext(exchange, next, browserId, context)
}

/** What this response is for: an upstream step of a login, or an account that is being connected. */
async function takeWaiting(
  parameters: URLSearchParams,
  context: AuthServerContext,
): Promise<UpstreamStep | UpstreamConnection> {
  const states = parameters.getAll('state')
  const [state] = states
  if (state === undefined || state === '' || states.length > 1) {
    throw new OAuthError(
      'invalid_request',
      'the response of the sign-in service does not say which login it is for',
    )
  }
  const waiting =
    (await context.state.upstreamSteps.take(state)) ?? (await context.state.connections.take(state))
  if (!waiting) throw goneError()
  return waiting
}

/** A state that was carried to another browser is worth nothing there. */
function checkBrowser(
  exchange: Exchange,
  waiting: Pick<UpstreamStep, 'browser' | 'provider'>,
  context: AuthServerContext,
): string {
  const id = readBrowser(exchange, context.keys(), context.urls.secure)
  if (id !== undefined && sha256(id) === waiting.browser) return id
  context.log.warn('a login came back in another browser than it was begun in', {
    upstream: waiting.provider,
  })
  throw new OAuthError(
    'access_denied',
    'this login was begun in another browser, or this browser does not accept cookies. Start again in one browser.',
  )
}

/**
 * Mix-up (RFC 9700 section 4.4): a code of one provider must not be carried to another, whoever mixed up the two. Each
 * provider may have a redirect URI of its own, and an `iss` that is another provider's tells as well, even when the one
 * that was asked has announced none.
 */
function checkSender(
  { path, parameters }: { readonly path: string; readonly parameters: URLSearchParams },
  upstream: Upstream,
  { config, upstreams }: AuthServerContext,
): void {
  const at = config.upstreams.filter(({ redirectUri }) => new URL(redirectUri).pathname === path)
  const iss = parameters.get('iss')
  const elsewhere = at.length > 0 && !at.some(({ name }) => name === upstream.name)
  const foreign = iss !== null && upstream.issuer !== iss && upstreams.some((other) => other.issuer === iss)
  if (elsewhere || foreign) throw new OAuthClientError('protocol', 'another provider answered than was asked')
}

/** Where the browser goes after this upstream step. */
async function finishUpstreamStep(
  step: UpstreamStep,
  finish: (proof: LoginProof) => Promise<Finished>,
  signedIn: string | undefined,
  context: AuthServerContext,
): Promise<Next> {
  const { maxAgeSec, prompt } = step.request
  const first = step.user === undefined
  let done: Finished
  try {
    done = await finish({
      codeVerifier: step.codeVerifier,
      nonce: step.nonce,
      ...(first && maxAgeSec !== undefined ? { maxAgeSec } : {}),
      ...(first && prompt.includes('login') ? { notBeforeSec: Math.floor(step.startedAtMs / 1000) } : {}),
    })
  } catch (error) {
    return { location: await upstreamStepFailed(context, step, step.provider, error) }
  }
  const user = userOf(context.config.issuer, step.provider, done.identity, nowSec(context))
  const login = withUpstreamStep(step, done.tokens, user)
  context.emit({
    type: 'login_completed',
    outcome: 'success',
    clientId: shownClient(step.request.clientId),
    userId: login.user?.userId,
    upstream: step.provider,
  })
  return advance(context, login, signedIn)
}
