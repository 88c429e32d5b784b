/**
 * The login as a whole: one upstream after the other, then the code.
 *
 * The first provider gives the identity and cannot be left out; the others only add tokens. Providers that the user
 * is still connected to through this client are not asked again. Tokens travel in the (sealed) record of the upstream step and
 * become rows only when the code is issued, so an abandoned login leaves nothing behind.
 * Source: docs/specification/external-auth.md#upstreamProviders, upstreamProviders; RFC 9207.
 */
import type { AuthServerContext } from './context.ts'
import { matchesRedirectUri } from '../clients/redirect-uri.ts'
import { within } from '../model/scopes.ts'
import { type OAuthCode, OAuthError } from '../model/oauth-error.ts'
import { shownClient } from '../model/events.ts'
import { signInMs } from './cookies.ts'
import { findConsent, rememberConsent } from './consents.ts'
import { loginMs } from '../storage/limits.ts'
import { isTransient, makeLoginSecrets, OAuthClientError, tokenRefusal } from '../../oauth/index.ts'
import { sessionHash } from '../../observe/index.ts'
import type { AuthRequest, Grant, UpstreamStep, User, UpstreamTokensRecord } from '../model/records.ts'
import { buildClientRedirect } from '../model/urls.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { randomId, upstreamRowKey } from '../model/identifiers.ts'

/** A login in flight; a UpstreamStep is this plus the secrets of one upstream request. */
export type LoginInProgress = Pick<
  UpstreamStep,
  'request' | 'chosen' | 'browser' | 'consentOf' | 'approvedAtMs' | 'user' | 'obtained'
>

export interface Next {
  /** Where the browser goes: to an upstream, to a page of ours, or back to the client. */
  readonly location: string
  /** The login is complete: under this new id it is recorded who is signed in at this browser. */
  readonly signIn?: string
}

/** `signedIn`: the browser's sign-in until now; a complete login ends it. */
export async function advance(
  context: AuthServerContext,
  login: LoginInProgress,
  signedIn: string | undefined,
): Promise<Next> {
  const { user, request } = login
  if (user && login.consentOf !== undefined && !(await stillConsents(context, login, user))) {
    if (request.prompt.includes('none')) {
      return { location: errorRedirect(context, request, 'consent_required', 'consent has not been given') }
    }
    return { location: await pause(context, login, user) }
  }
  const next = await nextUpstream(context, login)
  if (next) return { location: await startUpstreamStep(context, login, next) }
  if (!user) {
    return { location: errorRedirect(context, request, 'server_error', 'no upstream provider is configured') }
  }
  return complete(context, login, user, signedIn)
}

/**
 * Whether the consent that let this login skip the page counts for who is there now: somebody else may sit at this
 * browser, and the user may have withdrawn it meanwhile. Asked before anything else goes on.
 */
async function stillConsents(
  context: AuthServerContext,
  login: LoginInProgress,
  user: User,
): Promise<boolean> {
  if (login.consentOf !== user.userId) return false
  const consent = await findConsent(context.state, user.userId, login.request)
  return consent !== undefined && within(login.chosen, consent.providers)
}

/** The first chosen provider that this login still needs. */
async function nextUpstream(
  context: AuthServerContext,
  login: LoginInProgress,
): Promise<Upstream | undefined> {
  const { user, request } = login
  const connected = user ? await connectedProviders(context, user, request.clientId) : new Set<string>()
  const missing = context.upstreams.find(
    ({ name }, index) =>
      !login.obtained.some((tokens) => tokens.provider === name) &&
      (index === 0 || (login.chosen.includes(name) && !connected.has(name))),
  )
  return missing
}

/** Providers whose tokens this user already has through this client, and that are still of use. */
async function connectedProviders(
  context: AuthServerContext,
  user: User,
  clientId: string,
): Promise<ReadonlySet<string>> {
  const session = await context.sessions.find(user.userId, clientId)
  if (!session) return new Set()
  const rows = await Promise.all(
    session.providers.map((provider) => context.state.rows.get(upstreamRowKey(session.id, provider))),
  )
  const usable = rows.filter(
    (row) =>
      row !== undefined &&
      row.userId === user.userId &&
      row.clientId === clientId &&
      (row.refreshToken !== undefined || row.expiresAtMs === undefined || row.expiresAtMs > context.now()),
  )
  return new Set(usable.map((row) => row?.provider ?? ''))
}

/** Sends the browser to one provider; if that cannot be done, says so to the client or to the user. */
export async function startUpstreamStep(
  context: AuthServerContext,
  login: LoginInProgress,
  upstream: Upstream,
): Promise<string> {
  const secrets = makeLoginSecrets()
  const { request } = login
  const { state, codeVerifier, codeChallenge, nonce } = secrets
  // Only the first upstream step says who the user is; the others are asked for no more than silence.
  const first = login.user === undefined
  const prompt = request.prompt
    .filter((value) => value === 'none' || (first && value !== 'consent'))
    .join(' ')
  // A plain OAuth provider can neither be asked to be silent nor to sign the user in again.
  const impossible = request.prompt.includes('none') || (first && request.prompt.includes('login'))
  if (impossible && upstream.type === 'oauth2') {
    const error = first ? 'login_required' : 'interaction_required'
    return errorRedirect(context, request, error, 'the login needs the user')
  }
  let location: string
  try {
    location = await upstream.begin({
      state,
      codeVerifier,
      codeChallenge,
      nonce,
      ...(prompt === '' ? {} : { prompt }),
      ...(first && request.loginHint !== undefined ? { loginHint: request.loginHint } : {}),
      ...(first && request.maxAgeSec !== undefined ? { maxAgeSec: request.maxAgeSec } : {}),
    })
  } catch (error) {
    return upstreamStepFailed(context, login, upstream.name, error)
  }
  const step: UpstreamStep = {
    ...login,
    provider: upstream.name,
    codeVerifier,
    nonce,
    startedAtMs: context.now(),
  }
  await context.state.upstreamSteps.put(state, step, loginMs)
  return location
}

/** A failed first upstream step ends the login; a later one is for the user to decide about. */
export async function upstreamStepFailed(
  context: AuthServerContext,
  login: LoginInProgress,
  provider: string,
  error: unknown,
): Promise<string> {
  if (!(error instanceof OAuthClientError) && !isTransient(error)) throw error
  const { request, user } = login
  const { code, text } = meaning(error)
  context.log.warn('a login at an upstream provider failed', { upstream: provider, err: error })
  context.emit({
    type: 'login_failed',
    outcome: code === 'access_denied' ? 'denied' : 'failure',
    clientId: shownClient(request.clientId),
    userId: user?.userId,
    upstream: provider,
    reason: code,
  })
  if (!user) return errorRedirect(context, request, code, text)
  if (request.prompt.includes('none')) {
    return errorRedirect(context, request, 'interaction_required', 'the login needs the user')
  }
  return pause(context, login, user, provider)
}

/** What an error of the upstream means to the client. Nothing that the upstream wrote is passed on. */
function meaning(failure: unknown): { code: OAuthCode; text: string } {
  const error = failure instanceof OAuthClientError ? failure.error : undefined
  switch (error) {
    case 'access_denied':
      return { code: 'access_denied', text: 'the login was refused' }
    case 'login_required':
    case 'interaction_required':
    case 'consent_required':
      return { code: error, text: 'the login needs the user' }
    case 'account_selection_required':
      return { code: 'interaction_required', text: 'the login needs the user' }
    default:
      return isTemporary(failure, error)
        ? { code: 'temporarily_unavailable', text: 'the upstream provider is not available; try again later' }
        : { code: 'server_error', text: 'the login at the upstream provider failed' }
  }
}

/** True for a temporary failure. A `server_error` of the token endpoint is temporary, one of a redirect is not. */
function isTemporary(failure: unknown, error: string | undefined): boolean {
  return error === 'server_error' ? isTransient(failure) : tokenRefusal(failure) === 'temporary'
}

/** Keeps the login until the user has answered the page at /oauth/confirm. */
async function pause(
  context: AuthServerContext,
  login: LoginInProgress,
  user: User,
  failed?: string,
): Promise<string> {
  const handle = randomId()
  const { request, chosen, browser, obtained, consentOf, approvedAtMs } = login
  await context.state.confirmations.put(
    handle,
    {
      request,
      chosen,
      browser,
      user,
      obtained,
      ...(failed === undefined ? {} : { failed }),
      ...(consentOf === undefined ? {} : { consentOf }),
      ...(approvedAtMs === undefined ? {} : { approvedAtMs }),
    },
    loginMs,
  )
  return `${context.urls.confirm}?request=${handle}`
}

/** Everything is there: session, rows, code, and back to the client. A sign-in from before is over. */
async function complete(
  context: AuthServerContext,
  login: LoginInProgress,
  user: User,
  signedIn: string | undefined,
): Promise<Next> {
  const { config, state, clients, sessions, grants, now } = context
  const { request } = login
  // The client may have been deleted, or may have lost redirect URIs or scopes, while the user was away.
  const client = await clients.find(request.clientId)
  if (!client || !matchesRedirectUri(request.redirectUri, client.redirectUris))
    throw new OAuthError('invalid_client', 'the client is no longer registered')
  const scopes = request.scopes.filter((scope) => client.scopes.includes(scope))
  const endsAtMs = now() + config.authCodeMs + 60_000
  const { sessionId, grantId } = await sessions.open(user, request.clientId, login.obtained, endsAtMs)
  const grant: Grant = {
    grantId,
    sessionId,
    clientId: request.clientId,
    clientKind: request.clientKind,
    userId: user.userId,
    scopes,
    resources: request.resources,
    refreshable: request.refreshable && scopes.includes('offline_access'),
    authTimeSec: user.authTimeSec,
  }
  const code = await grants.issueCode(grant, request)
  const signIn = randomId()
  const { approvedAtMs, chosen } = login
  await Promise.all([
    state.signIns.put(signIn, { userId: user.userId }, signInMs),
    signedIn === undefined ? undefined : state.signIns.delete(signedIn),
    approvedAtMs === undefined
      ? undefined
      : rememberConsent(state, user.userId, request, chosen, approvedAtMs),
  ])
  context.emit({
    type: 'code_issued',
    outcome: 'success',
    clientId: shownClient(request.clientId),
    userId: user.userId,
    sessionHash: sessionHash(sessionId),
  })
  const location = buildClientRedirect(request.redirectUri, config.issuer, {
    code,
    state: request.state,
    ...(scopes.length === request.scopes.length ? {} : { scope: scopes.join(' ') }),
  })
  return { location, signIn }
}

/** The client's redirect URI with an error. */
export function errorRedirect(
  context: AuthServerContext,
  request: Pick<AuthRequest, 'redirectUri' | 'state'>,
  error: OAuthCode,
  description: string,
): string {
  return buildClientRedirect(request.redirectUri, context.config.issuer, {
    error,
    error_description: description,
    state: request.state,
  })
}

/** A provider's tokens and, from the first one, the user; folded into the login. */
export function withUpstreamStep(
  login: LoginInProgress,
  tokens: UpstreamTokensRecord,
  user: User | undefined,
): LoginInProgress {
  const { request, chosen, browser, consentOf, approvedAtMs, obtained } = login
  const who = login.user ?? user
  return {
    request,
    chosen,
    browser,
    obtained: [...obtained.filter((one) => one.provider !== tokens.provider), tokens],
    ...(consentOf === undefined ? {} : { consentOf }),
    ...(approvedAtMs === undefined ? {} : { approvedAtMs }),
    ...(who === undefined ? {} : { user: who }),
  }
}
