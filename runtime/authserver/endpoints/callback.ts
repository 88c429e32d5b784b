/**
 * Where every upstream sends the browser back to: one leg of a login ends here.
 *
 * The leg's record is taken, so an answer counts once. It must come in the browser that began the login, and from the
 * upstream that was asked. What the upstream said is verified by the upstream's own room; its texts go to the log, never
 * to the client.
 * Source: RFC 6749 section 4.1.2, RFC 9207, RFC 9700 sections 4.4 (mix-up) and 4.7 (CSRF); OpenID Connect Core 3.1.2.5.
 */
import type { Exchange } from '../../net/index.ts'
import { browserCookie, readBrowser } from '../consent/cookies.ts'
import { type Context, nowSec, upstreamNamed } from '../context.ts'
import { shownClient } from '../events.ts'
import { OAuthFault } from '../../oauth/index.ts'
import type { Leg } from '../storage/records.ts'
import { hashed } from '../tokens/opaque.ts'
import { advance, legFailed, withLeg } from '../upstream/legs.ts'
import { personOf } from '../upstream/person.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { sendRedirect } from './answers.ts'
import { goneError } from './consent.ts'
import { OAuthError } from './oauth-error.ts'

export async function callback(exchange: Exchange, context: Context): Promise<void> {
  const leg = await takeLeg(new URLSearchParams(exchange.query), context)
  const browserId = checkBrowser(exchange, leg, context)
  const upstream = upstreamNamed(context, leg.provider)
  if (!upstream) throw new OAuthError('server_error', 'the upstream provider is no longer configured')
  const location = await finishLeg(exchange, leg, upstream, browserId, context)
  sendRedirect(exchange, location, {
    'Set-Cookie': [browserCookie(browserId, context.keys(), context.urls.secure)],
  })
}

async function takeLeg(parameters: URLSearchParams, context: Context): Promise<Leg> {
  const states = parameters.getAll('state')
  const [state] = states
  if (state === undefined || state === '' || states.length > 1) {
    throw new OAuthError(
      'invalid_request',
      'the answer of the sign-in service does not say which login it is for',
    )
  }
  const leg = await context.state.legs.take(state)
  if (!leg) throw goneError()
  return leg
}

/** A state that was carried to another browser is worth nothing there. */
function checkBrowser(exchange: Exchange, leg: Leg, context: Context): string {
  const id = readBrowser(exchange, context.keys(), context.urls.secure)
  if (id !== undefined && hashed(id) === leg.browser) return id
  context.log.warn('a login came back in another browser than it was begun in', { upstream: leg.provider })
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
  path: string,
  parameters: URLSearchParams,
  upstream: Upstream,
  { config, upstreams }: Context,
): void {
  const at = config.upstreams.filter(({ redirectUri }) => new URL(redirectUri).pathname === path)
  const iss = parameters.get('iss')
  const elsewhere = at.length > 0 && !at.some(({ name }) => name === upstream.name)
  const foreign = iss !== null && upstream.issuer !== iss && upstreams.some((other) => other.issuer === iss)
  if (elsewhere || foreign) throw new OAuthFault('protocol', 'another provider answered than was asked')
}

/** Where the browser goes after this leg. */
async function finishLeg(
  exchange: Exchange,
  leg: Leg,
  upstream: Upstream,
  browserId: string,
  context: Context,
): Promise<string> {
  const parameters = new URLSearchParams(exchange.query)
  const { maxAgeSec, prompt } = leg.request
  const first = leg.person === undefined
  let done: Awaited<ReturnType<Upstream['finish']>>
  try {
    checkSender(exchange.path, parameters, upstream, context)
    done = await upstream.finish(parameters, {
      codeVerifier: leg.codeVerifier,
      nonce: leg.nonce,
      ...(first && maxAgeSec !== undefined ? { maxAgeSec } : {}),
      ...(first && prompt.includes('login') ? { notBeforeSec: Math.floor(leg.startedAtMs / 1000) } : {}),
    })
  } catch (error) {
    return legFailed(context, leg, upstream.name, error)
  }
  const person = personOf(context.config.issuer, upstream.name, done.identity, nowSec(context))
  const login = withLeg(leg, done.tokens, person)
  context.emit({
    type: 'login_completed',
    outcome: 'success',
    clientId: shownClient(leg.request.clientId),
    userId: login.person?.userId,
    upstream: upstream.name,
  })
  return advance(context, login, browserId)
}
