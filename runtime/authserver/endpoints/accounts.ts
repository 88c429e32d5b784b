/**
 * Connected accounts: what a user's clients are connected to, and the means to connect, renew and disconnect.
 *
 * Who the user is, the browser's cookie says, which only a completed login here has set; nothing secret is shown.
 * Connecting is a login at one provider for one client: it must end in the browser that began it, for the first
 * provider as the same user, and changes nothing but that provider's tokens. Every change comes by the page's own form.
 * Source: docs/specification/external-auth.md#upstreamProviders, upstreamProviders; RFC 9700 section 4.7.
 */
import type { Exchange } from '../../net/index.ts'
import { makeLoginSecrets, OAuthClientError } from '../../oauth/index.ts'
import { sessionHash } from '../../observe/index.ts'
import { type Account, accountsPage, leftPage, type ConnectedClient } from '../login/accounts-page.ts'
import { makeForm, newBrowser, noSignInCookie, readBrowser, readSignIn } from '../login/cookies.ts'
import { withdrawConsents } from '../login/consents.ts'
import { type AuthServerContext, nowSec, upstreamNamed } from '../login/context.ts'
import { shownClient } from '../model/events.ts'
import { limit, loginMs } from '../storage/limits.ts'
import type { UpstreamConnection, LoginSession } from '../model/records.ts'
import { isSynthesized, userOf } from '../upstream/user.ts'
import type { Finished, LoginProof, Upstream } from '../upstream/upstream.ts'
import { sendPage, sendRedirect } from './responses.ts'
import { checkForm, sendNext } from './consent.ts'
import { formOf, queryOf } from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256, upstreamRowKey } from '../model/identifiers.ts'

interface Visitor {
  readonly signIn: string
  readonly userId: string
}

async function visitorOf(exchange: Exchange, context: AuthServerContext): Promise<Visitor> {
  const signIn = readSignIn(exchange, context.urls.secure)
  const known = signIn === undefined ? undefined : await context.state.signIns.get(signIn)
  if (signIn !== undefined && known) return { signIn, userId: known.userId }
  throw new OAuthError(
    'login_required',
    'nobody is signed in in this browser. Sign in from one of your clients first.',
    { status: 401 },
  )
}

/** GET: the page. `problem` names a provider that could not be connected just now. */
export async function showAccounts(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const { userId } = await visitorOf(exchange, context)
  const sessions = await context.sessions.of(userId)
  const clients = await Promise.all(sessions.map((session) => connectedClientOf(session, context)))
  const over = await Promise.all(
    (await context.sessions.ended(userId)).map(async ({ clientId, provider }) => ({
      ...(await nameOf(clientId, context)),
      provider,
    })),
  )
  const problem = upstreamNamed(context, queryOf(exchange).get('problem') ?? '')?.name
  const form = makeForm(exchange, formSubject(userId), context.keys(), context.urls.secure)
  const [latest] = sessions
  const page = accountsPage(context, {
    form: form.field,
    clients,
    over,
    problem,
    who: latest?.email ?? latest?.name,
  })
  sendPage(exchange, 200, page.html, { ...page.headers, 'Set-Cookie': [form.cookie] })
}

const formSubject = (userId: string): string => `accounts ${userId}`

/** How a session is named in a form; its id itself never leaves. */
const handleOf = (session: LoginSession): string => sha256(`accounts ${session.id}`)

/** A client as users know it: by its own name, or by the host that describes it. */
async function nameOf(
  clientId: string,
  context: AuthServerContext,
): Promise<{ readonly name: string; readonly described: boolean }> {
  if (clientId.includes('://')) return { name: shownClient(clientId), described: true }
  const client = await context.state.clients.get(clientId)
  return { name: client?.name ?? 'A client without a name', described: false }
}

async function connectedClientOf(
  session: LoginSession,
  context: AuthServerContext,
): Promise<ConnectedClient> {
  return {
    handle: handleOf(session),
    ...(await nameOf(session.clientId, context)),
    accounts: await Promise.all(
      context.upstreams.map(async ({ name, host }, index) => ({
        // A synthesized subject never comes again, so nobody could be told from the user.
        mayConnect: index > 0 || !isSynthesized(session.userId),
        ...(await accountOf(session, name, host, context)),
      })),
    ),
  }
}

async function accountOf(
  session: LoginSession,
  name: string,
  host: string,
  context: AuthServerContext,
): Promise<Omit<Account, 'mayConnect'>> {
  const row = await context.state.rows.get(upstreamRowKey(session.id, name))
  if (!row || row.userId !== session.userId || row.clientId !== session.clientId) {
    return { name, host, state: session.providers.includes(name) ? 'broken' : 'none' }
  }
  const leftMs = row.expiresAtMs === undefined ? Number.POSITIVE_INFINITY : row.expiresAtMs - context.now()
  if (row.refreshToken !== undefined || leftMs === Number.POSITIVE_INFINITY) {
    return { name, host, state: 'connected' }
  }
  return leftMs > 0 ? { name, host, state: 'expiring', leftMs } : { name, host, state: 'broken' }
}

/** POST: connect (or renew), disconnect, end everything of one client, or leave this browser. */
export async function changeAccounts(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  const visitor = await visitorOf(exchange, context)
  checkForm(exchange, formSubject(visitor.userId), form, context)
  const action = form.get('action')
  if (action === 'leave') return leave(exchange, visitor, context)
  const handle = form.get('client') ?? ''
  const session = (await context.sessions.of(visitor.userId)).find((one) => handleOf(one) === handle)
  if (!session) throw new OAuthError('invalid_request', 'this client is no longer signed in')
  const upstream = upstreamNamed(context, form.get('provider') ?? '')
  const withdraw = (): Promise<void> =>
    withdrawConsents(context.state, visitor.userId, session.clientId, context.now())
  if (action === 'end') {
    await withdraw()
    await context.sessions.endSession(session.id)
    tell(context, session, 'ended by the user')
  } else if (action === 'connect' && upstream) {
    await limit(context.state.store, 'authorize', context.addressOf(exchange))
    const { secure } = context.urls
    const browserId = readBrowser(exchange, context.keys(), secure) ?? newBrowser()
    const location = await begin(session, browserId, upstream, context)
    return sendNext(exchange, { location }, browserId, context)
  } else if (action === 'disconnect' && upstream) {
    await withdraw()
    // Without the only provider the client could do nothing but refresh its tokens.
    if (context.upstreams.length === 1) await context.sessions.endSession(session.id)
    else await context.sessions.disconnect(session.id, upstream.name)
    tell(context, session, 'disconnected by the user', upstream.name)
  } else throw new OAuthError('invalid_request', 'the form says nothing that can be done')
  sendRedirect(exchange, context.urls.accounts)
}

/** Nobody is signed in in this browser any more; what clients may do is as it was. */
async function leave(exchange: Exchange, { signIn }: Visitor, context: AuthServerContext): Promise<void> {
  await context.state.signIns.delete(signIn)
  const page = leftPage()
  const cookies = { 'Set-Cookie': [noSignInCookie(context.urls.secure)] }
  sendPage(exchange, 200, page.html, { ...page.headers, ...cookies })
}

function tell(context: AuthServerContext, session: LoginSession, reason: string, upstream?: string): void {
  context.emit({
    type: 'grant_ended',
    outcome: 'success',
    clientId: shownClient(session.clientId),
    userId: session.userId,
    sessionHash: sessionHash(session.id),
    upstream,
    reason,
  })
}

/** Where the browser goes to connect one provider to one client. */
async function begin(
  session: LoginSession,
  browserId: string,
  upstream: Upstream,
  context: AuthServerContext,
): Promise<string> {
  const { state, codeVerifier, codeChallenge, nonce } = makeLoginSecrets()
  let location: string
  try {
    location = await upstream.begin({ state, codeVerifier, codeChallenge, nonce })
  } catch (error) {
    return problemAt(upstream, error, context)
  }
  await context.state.connections.put(
    state,
    {
      provider: upstream.name,
      codeVerifier,
      nonce,
      browser: sha256(browserId),
      sessionId: session.id,
      userId: session.userId,
    },
    loginMs,
  )
  return location
}

/** The provider's answer: its tokens become those of the client. Returns where the browser goes. */
export async function finishConnection(
  exchange: Exchange,
  waiting: UpstreamConnection,
  upstream: Upstream,
  finish: (proof: LoginProof) => Promise<Finished>,
  context: AuthServerContext,
): Promise<string> {
  const { codeVerifier, nonce, sessionId, userId } = waiting
  const about = { userId, upstream: upstream.name, sessionHash: sessionHash(sessionId) }
  // A link that somebody else began must not bring this browser's account into that user's session.
  if ((await visitorOf(exchange, context)).userId !== userId) {
    throw new OAuthError('access_denied', 'another user has signed in in this browser meanwhile')
  }
  try {
    const { identity, tokens } = await finish({ codeVerifier, nonce })
    const first = upstream.name === context.upstreams[0]?.name
    // Somebody else's tokens must not come into this user's session.
    const who = userOf(context.config.issuer, upstream.name, identity, nowSec(context)).userId
    if (first && who !== userId) {
      throw new OAuthClientError('protocol', 'another user signed in')
    }
    if (!(await context.sessions.connect(sessionId, userId, tokens))) {
      throw new OAuthClientError('refused', 'the client is no longer signed in')
    }
  } catch (error) {
    context.emit({ type: 'login_failed', outcome: 'failure', ...about, reason: 'connecting an account' })
    return problemAt(upstream, error, context)
  }
  context.emit({ type: 'login_completed', outcome: 'success', ...about, reason: 'connecting an account' })
  return context.urls.accounts
}

/** What the provider refused is shown on the page; anything else is thrown on. */
function problemAt(upstream: Upstream, error: unknown, context: AuthServerContext): string {
  if (!(error instanceof OAuthClientError)) throw error
  context.log.warn('an account could not be connected', { upstream: upstream.name, err: error })
  return `${context.urls.accounts}?problem=${upstream.name}`
}
