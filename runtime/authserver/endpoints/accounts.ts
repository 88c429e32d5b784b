/**
 * Connected accounts: the page where users connect, renew and disconnect their clients' providers.
 *
 * The sign-in cookie, which only a completed login sets, identifies the user. The page shows no secrets. To connect an
 * account, the user signs in to one provider on behalf of one client. The login must end in the browser that began it,
 * and changes only that provider's tokens. At the first provider, the login must also identify the same user as before.
 * Every change comes from the page's own form.
 * Source: docs/reference/specification/external-auth.md#upstreamProviders, upstreamProviders; RFC 9700 section 4.7.
 */
import { type Exchange, shortClientId } from '../../net/index.ts'
import { makeLoginSecrets, OAuthClientError } from '../../oauth/index.ts'
import { type Account, accountsPage, type ConnectedClient, signedOutPage } from '../login/accounts-page.ts'
import { withdrawConsents } from '../login/consents.ts'
import { type AuthServerContext, findUpstream, nowSec } from '../login/context.ts'
import { makeForm, makeSignOutCookie, readBrowserId, readSignIn } from '../login/cookies.ts'
import { makeEvent } from '../model/events.ts'
import { randomId, sha256, upstreamRowKey } from '../model/identifiers.ts'
import { isOffered } from '../model/offered.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { LoginSession, UpstreamConnection } from '../model/records.ts'
import { limitRate, loginMs } from '../storage/limits.ts'
import type { FinishedLogin, LoginProof, Upstream } from '../upstream/upstream.ts'
import { isSynthesized, userOf } from '../upstream/user.ts'
import { checkFormOrigin, readForm, readQuery } from './form.ts'
import { sendLoginRedirect, sendPage, sendRedirect } from './responses.ts'

/** GET: shows the page. The parameter `problem` contains the name of a provider that could not be connected. */
export async function showAccounts(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const { userId } = await requireSignIn(exchange, context)
  const sessions = await context.sessions.of(userId)
  const ended = await context.sessions.ended(userId)
  const form = makeForm(exchange, formSubject(userId), context)
  const page = accountsPage(context, {
    form: form.field,
    clients: await Promise.all(sessions.map((session) => describeSession(session, context))),
    ended: await Promise.all(
      ended.map(async ({ clientId, provider }) => ({
        ...(await describeClient(clientId, context)),
        provider,
      })),
    ),
    problem: findUpstream(context, readQuery(exchange).get('problem') ?? '')?.name,
    user: sessions[0]?.email ?? sessions[0]?.name,
  })
  sendPage(exchange, page, { headers: { 'Set-Cookie': [form.cookie] } })
}

/** Returns the user who has signed in with this browser. Throws OAuthError login_required. */
async function requireSignIn(
  exchange: Exchange,
  context: AuthServerContext,
): Promise<{ readonly signIn: string; readonly userId: string }> {
  const signIn = readSignIn(exchange, context)
  const known = signIn === undefined ? undefined : await context.state.signIns.get(signIn)
  if (signIn !== undefined && known) return { signIn, userId: known.userId }
  throw new OAuthError(
    'login_required',
    'no user has signed in with this browser. Sign in from one of your clients first.',
    { status: 401 },
  )
}

const formSubject = (userId: string): string => `accounts ${userId}`

/** Identifies a session without revealing its id, which is a secret. */
const handleOf = (session: LoginSession): string => sha256(`accounts ${session.id}`)

async function describeSession(session: LoginSession, context: AuthServerContext): Promise<ConnectedClient> {
  const offered = context.upstreams.filter(({ name }) => isOffered(session, name))
  const accounts = offered.map(async (upstream) => ({
    ...(await describeAccount(session, upstream, context)),
    // A synthesized subject changes with every login, so a different user could not be detected.
    canConnect: upstream !== context.upstreams[0] || !isSynthesized(session.userId),
  }))
  return {
    handle: handleOf(session),
    ...(await describeClient(session.clientId, context)),
    accounts: await Promise.all(accounts),
  }
}

/** Returns the host of the client's metadata document, otherwise the name that the client chose, otherwise its id. */
async function describeClient(
  clientId: string,
  context: AuthServerContext,
): Promise<Pick<ConnectedClient, 'name' | 'namedBy'>> {
  if (clientId.includes('://')) return { name: shortClientId(clientId), namedBy: 'host' }
  const { name } = (await context.state.clients.get(clientId)) ?? {}
  return name === undefined ? { name: `Client ${clientId}`, namedBy: 'id' } : { name, namedBy: 'client' }
}

async function describeAccount(
  session: LoginSession,
  { name, host }: Upstream,
  { state, now }: AuthServerContext,
): Promise<Omit<Account, 'canConnect'>> {
  const row = await state.rows.get(upstreamRowKey(session.id, name))
  if (!row || row.userId !== session.userId || row.clientId !== session.clientId)
    return { name, host, state: session.providers.includes(name) ? 'broken' : 'none' }
  if (row.refreshToken !== undefined || row.expiresAtMs === undefined)
    return { name, host, state: 'connected' }
  const leftMs = row.expiresAtMs - now()
  return { name, host, state: leftMs > 0 ? 'expiring' : 'broken', leftMs }
}

/** POST: connects, renews or disconnects a provider, ends a client's access, or signs this browser out. */
export async function changeAccounts(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readForm(exchange)
  const { signIn, userId } = await requireSignIn(exchange, context)
  checkFormOrigin(exchange, { form, subject: formSubject(userId) }, context)
  const action = form.get('action')
  if (action === 'leave') return signOut(exchange, signIn, context)
  const sessions = await context.sessions.of(userId)
  const session = sessions.find((candidate) => handleOf(candidate) === form.get('client'))
  if (!session) throw new OAuthError('invalid_request', 'this client is no longer signed in')
  const upstream = findUpstream(context, form.get('provider') ?? '')
  if (action === 'connect' && upstream && isOffered(session, upstream.name))
    return startConnection(exchange, { session, upstream }, context)
  if (action === 'end') await endClient(session, context)
  else if (action === 'disconnect' && upstream) await disconnect(session, upstream, context)
  else throw new OAuthError('invalid_request', 'the form has no supported action')
  sendRedirect(exchange, context.urls.accounts)
}

/** Ends this browser's sign-in. Clients keep their access. */
async function signOut(exchange: Exchange, signIn: string, context: AuthServerContext): Promise<void> {
  await context.state.signIns.delete(signIn)
  sendPage(exchange, signedOutPage(), { headers: { 'Set-Cookie': [makeSignOutCookie(context)] } })
}

async function endClient(session: LoginSession, context: AuthServerContext): Promise<void> {
  const { id: sessionId, clientId, userId } = session
  await withdrawConsents(context, session)
  await context.sessions.endSession(sessionId)
  context.emit(makeEvent('grant_ended', { clientId, userId, sessionId, reason: 'ended by the user' }))
}

async function disconnect(
  session: LoginSession,
  { name: upstream }: Upstream,
  context: AuthServerContext,
): Promise<void> {
  const { id: sessionId, clientId, userId } = session
  await withdrawConsents(context, session)
  const hasOthers = context.upstreams.some(({ name }) => name !== upstream && isOffered(session, name))
  if (hasOthers) await context.sessions.disconnect(sessionId, upstream)
  // Without its provider, the client could do nothing but refresh its tokens.
  else await context.sessions.endSession(sessionId)
  const reason = 'disconnected by the user'
  context.emit(makeEvent('grant_ended', { clientId, userId, sessionId, upstream, reason }))
}

/** Sends the browser to a provider, to connect the provider to a client. */
async function startConnection(
  exchange: Exchange,
  { session, upstream }: { readonly session: LoginSession; readonly upstream: Upstream },
  context: AuthServerContext,
): Promise<void> {
  await limitRate(context.state.store, 'authorize', context.addressOf(exchange))
  const browserId = readBrowserId(exchange, context) ?? randomId()
  const { state, codeVerifier, codeChallenge, nonce } = makeLoginSecrets()
  let location: string
  try {
    location = await upstream.begin({ state, codeVerifier, codeChallenge, nonce })
    const { id: sessionId, userId } = session
    const browser = sha256(browserId)
    const connection = { provider: upstream.name, codeVerifier, nonce, browser, sessionId, userId }
    await context.state.connections.put(state, connection, loginMs)
  } catch (error) {
    location = reportProblem(upstream, error, context)
  }
  sendLoginRedirect(exchange, { location, browserId }, context)
}

/** A provider's response, which `finish` verifies. */
export interface UpstreamResponse {
  readonly exchange: Exchange
  readonly upstream: Upstream
  readonly finish: (proof: LoginProof) => Promise<FinishedLogin>
}

/** Stores the provider's tokens in the client's session. Returns the URL to send the browser to. */
export async function finishConnection(
  { codeVerifier, nonce, sessionId, userId }: UpstreamConnection,
  { exchange, upstream, finish }: UpstreamResponse,
  context: AuthServerContext,
): Promise<string> {
  const { config, sessions, upstreams, urls } = context
  const provider = upstream.name
  const about = { userId, upstream: provider, sessionId, reason: 'connecting an account' }
  // A link created by another user must not bring this browser's account into that user's session.
  if ((await requireSignIn(exchange, context)).userId !== userId)
    throw new OAuthError('access_denied', 'another user has since signed in with this browser')
  try {
    const { identity, tokens } = await finish({ codeVerifier, nonce })
    // Another user's tokens must not enter this user's session.
    const user = userOf(config.issuer, { provider, identity }, nowSec(context))
    if (provider === upstreams[0]?.name && user.userId !== userId)
      throw new OAuthClientError('protocol', 'another user signed in')
    if (!(await sessions.connect(sessionId, userId, tokens)))
      throw new OAuthClientError('refused', 'the client is no longer signed in')
  } catch (error) {
    context.emit(makeEvent('login_failed', about))
    return reportProblem(upstream, error, context)
  }
  context.emit(makeEvent('login_completed', about))
  return urls.accounts
}

/** Returns the URL of the page that shows the problem. Rethrows errors that do not come from the provider. */
function reportProblem({ name }: Upstream, error: unknown, { log, urls }: AuthServerContext): string {
  if (!(error instanceof OAuthClientError)) throw error
  log.warn('connecting an account failed', { upstream: name, err: error })
  return `${urls.accounts}?problem=${name}`
}
