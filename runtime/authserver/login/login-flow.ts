/**
 * Runs the whole login: each upstream in turn, then the code.
 *
 * The first provider identifies the user and cannot be left out. The other providers only add tokens. Providers to
 * which the user is still connected through this client are skipped. Tokens are kept in the (sealed) record of the
 * upstream step. The tokens are copied to separate rows only when the code is issued, so an abandoned login leaves
 * nothing behind.
 * Source: docs/reference/specification/external-auth.md#upstreamProviders, upstreamProviders; RFC 9207.
 */
import { isTransient, makeLoginSecrets, OAuthClientError, tokenRefusal } from '../../oauth/index.ts'
import { matchesRedirectUri } from '../clients/redirect-uri.ts'
import { makeEvent } from '../model/events.ts'
import { randomId, upstreamRowKey } from '../model/identifiers.ts'
import { isOffered, withheldProviders } from '../model/offered.ts'
import { type OAuthCode, OAuthError } from '../model/oauth-error.ts'
import type { AuthRequest, Grant, LoginInProgress, User } from '../model/records.ts'
import { within } from '../model/scopes.ts'
import { buildClientRedirect } from '../model/urls.ts'
import { loginMs } from '../storage/limits.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { findConsent, rememberConsent } from './consents.ts'
import type { AuthServerContext } from './context.ts'
import { signInMs } from './cookies.ts'

type IdentifiedLogin = LoginInProgress & { readonly user: User }

export interface LoginRedirect {
  /** Where the browser goes next: a provider, a page of this server, or the client. */
  readonly location: string
  /** Id of the new sign-in record. Present when the login is complete. */
  readonly signIn?: string
}

/** Advances the login by one step. `signIn` is the browser's current sign-in, which a completed login replaces. */
export async function advanceLogin(
  context: AuthServerContext,
  login: LoginInProgress,
  signIn: string | undefined,
): Promise<LoginRedirect> {
  const { user, request } = login
  if (user && login.consentOf !== undefined && !(await hasConsent(context, { ...login, user }))) {
    const location = request.prompt.includes('none')
      ? makeErrorRedirect(context, request, consentRequired)
      : await askUser(context, { ...login, user })
    return { location }
  }
  const next = await findNextUpstream(context, login)
  if (next) return { location: await startUpstreamStep(context, login, next) }
  if (user) return completeLogin(context, { ...login, user }, signIn)
  const error = { error: 'server_error', description: 'no upstream provider is configured' } as const
  return { location: makeErrorRedirect(context, request, error) }
}

/**
 * True if the user who has signed in also gave the consent that let this login skip the page. Another user may be using
 * this browser, or the user may have withdrawn the consent in the meantime. Checked before the login continues.
 */
async function hasConsent(context: AuthServerContext, login: IdentifiedLogin): Promise<boolean> {
  const { userId } = login.user
  if (login.consentOf !== userId) return false
  const consent = await findConsent(context.state, userId, login.request)
  return consent !== undefined && within(login.chosen, consent.providers)
}

/** Returns the first provider that is chosen and offered, and that this login still requires. */
async function findNextUpstream(
  context: AuthServerContext,
  { user, request, chosen, obtained, offered }: LoginInProgress,
): Promise<Upstream | undefined> {
  const connected = user ? await connectedProviders(context, user, request.clientId) : new Set<string>()
  return context.upstreams.find(
    ({ name }, index) =>
      !obtained.some((tokens) => tokens.provider === name) &&
      (index === 0 || (chosen.includes(name) && isOffered({ offered }, name) && !connected.has(name))),
  )
}

/** Returns the providers whose usable tokens this user already has through this client. */
async function connectedProviders(
  { sessions, state, now }: AuthServerContext,
  { userId }: User,
  clientId: string,
): Promise<ReadonlySet<string>> {
  const session = await sessions.find(userId, clientId)
  if (!session) return new Set()
  const rows = await Promise.all(
    session.providers.map((provider) => state.rows.get(upstreamRowKey(session.id, provider))),
  )
  const usable = rows.filter(
    (row) =>
      row?.userId === userId &&
      row.clientId === clientId &&
      (row.refreshToken !== undefined || row.expiresAtMs === undefined || row.expiresAtMs > now()),
  )
  return new Set(usable.map((row) => row?.provider ?? ''))
}

/**
 * Returns the URL to send the browser to: the provider's login, or a redirect that reports that the provider cannot be
 * used.
 */
export async function startUpstreamStep(
  context: AuthServerContext,
  login: LoginInProgress,
  upstream: Upstream,
): Promise<string> {
  const { request } = login
  const { state, codeVerifier, codeChallenge, nonce } = makeLoginSecrets()
  // Only the first upstream step identifies the user, so the other steps support only `none`.
  const isFirst = login.user === undefined
  const prompt = request.prompt.filter((value) => value === 'none' || (isFirst && value !== 'consent'))
  // A plain OAuth provider supports neither a silent nor a forced login.
  const needsPrompt = request.prompt.includes('none') || (isFirst && request.prompt.includes('login'))
  if (needsPrompt && upstream.type === 'oauth2') {
    return makeErrorRedirect(
      context,
      request,
      userRequired(isFirst ? 'login_required' : 'interaction_required'),
    )
  }
  let location: string
  try {
    location = await upstream.begin({
      state,
      codeVerifier,
      codeChallenge,
      nonce,
      prompt: prompt.length === 0 ? undefined : prompt.join(' '),
      ...(isFirst ? { loginHint: request.loginHint, maxAgeSec: request.maxAgeSec } : {}),
    })
  } catch (error) {
    return handleUpstreamFailure(context, login, { provider: upstream.name, error })
  }
  const step = { ...login, provider: upstream.name, codeVerifier, nonce, startedAtMs: context.now() }
  await context.state.upstreamSteps.put(state, step, loginMs)
  return location
}

/**
 * Returns the URL to send the browser to after a failed step. A failed first step ends the login; for later steps, the
 * user decides.
 */
export async function handleUpstreamFailure(
  context: AuthServerContext,
  login: LoginInProgress,
  { provider, error: cause }: { readonly provider: string; readonly error: unknown },
): Promise<string> {
  if (!(cause instanceof OAuthClientError) && !isTransient(cause)) throw cause
  const { request, user } = login
  const failure = describeFailure(cause)
  context.log.warn('a login with an upstream provider failed', { upstream: provider, err: cause })
  context.emit(
    makeEvent('login_failed', {
      outcome: failure.error === 'access_denied' ? 'denied' : 'failure',
      clientId: request.clientId,
      userId: user?.userId,
      upstream: provider,
      reason: failure.error,
    }),
  )
  if (!user) return makeErrorRedirect(context, request, failure)
  if (request.prompt.includes('none'))
    return makeErrorRedirect(context, request, userRequired('interaction_required'))
  return askUser(context, { ...login, user }, provider)
}

interface ClientError {
  readonly error: OAuthCode
  readonly description: string
}

export const consentRequired: ClientError = {
  error: 'consent_required',
  description: 'consent has not been given',
}

function userRequired(error: OAuthCode): ClientError {
  return { error, description: 'the login requires user interaction' }
}

/** Translates an upstream error for the client. Text from the upstream is not forwarded. */
function describeFailure(failure: unknown): ClientError {
  const error = failure instanceof OAuthClientError ? failure.error : undefined
  switch (error) {
    case 'access_denied':
      return { error, description: 'the login was rejected' }
    case 'login_required':
    case 'interaction_required':
    case 'consent_required':
      return userRequired(error)
    case 'account_selection_required':
      return userRequired('interaction_required')
    default:
      return isTemporary(failure, error)
        ? {
            error: 'temporarily_unavailable',
            description: 'the upstream provider is not available; try again later',
          }
        : { error: 'server_error', description: 'the login with the upstream provider failed' }
  }
}

/**
 * True for a temporary failure. A `server_error` from the token endpoint is temporary; a `server_error` in a redirect
 * is not.
 */
function isTemporary(failure: unknown, error: string | undefined): boolean {
  return error === 'server_error' ? isTransient(failure) : tokenRefusal(failure) === 'temporary'
}

/** Stores the login until the user has answered the page at /oauth/confirm. Returns that page's address. */
async function askUser(context: AuthServerContext, login: IdentifiedLogin, failed?: string): Promise<string> {
  const handle = randomId()
  await context.state.confirmations.put(handle, { ...login, failed }, loginMs)
  return `${context.urls.confirm}?request=${handle}`
}

/**
 * Creates the session, the rows and the code, replaces the browser's sign-in, and sends the browser back to the client.
 */
async function completeLogin(
  context: AuthServerContext,
  login: IdentifiedLogin,
  previousSignIn: string | undefined,
): Promise<LoginRedirect> {
  const { config, state, clients, sessions, grants, upstreams, now } = context
  const { user, request, chosen, obtained, offered, approvedAtMs } = login
  const { clientId, clientKind, redirectUri, resources } = request
  // The client may have been deleted, or may have lost redirect URIs or scopes, while the user was away.
  const client = await clients.find(clientId)
  if (!client || !matchesRedirectUri(redirectUri, client.redirectUris))
    throw new OAuthError('invalid_client', 'the client is no longer registered')
  const scopes = request.scopes.filter((scope) => client.scopes.includes(scope))
  const endsAtMs = now() + config.authCodeMs + 60_000
  const withheld = withheldProviders(upstreams, login)
  const opened = await sessions.open({ user, clientId, obtained, offered, withheld, endsAtMs })
  const { userId, authTimeSec } = user
  const refreshable = request.refreshable && scopes.includes('offline_access')
  const grant: Grant = {
    ...opened,
    clientId,
    clientKind,
    userId,
    scopes,
    resources,
    refreshable,
    authTimeSec,
    authMethod: client.authMethod,
  }
  const code = await grants.issueCode(grant, request)
  const signIn = randomId()
  await Promise.all([
    state.signIns.put(signIn, { userId }, signInMs),
    previousSignIn === undefined ? undefined : state.signIns.delete(previousSignIn),
    approvedAtMs === undefined
      ? undefined
      : rememberConsent(state, userId, { request, providers: chosen, atMs: approvedAtMs }),
  ])
  context.emit(makeEvent('code_issued', grant))
  const scope = scopes.length === request.scopes.length ? undefined : scopes.join(' ')
  return {
    location: buildClientRedirect(redirectUri, config.issuer, { code, state: request.state, scope }),
    signIn,
  }
}

/** Returns the client's redirect URI with an error. */
export function makeErrorRedirect(
  { config }: AuthServerContext,
  { redirectUri, state }: Pick<AuthRequest, 'redirectUri' | 'state'>,
  { error, description }: ClientError,
): string {
  return buildClientRedirect(redirectUri, config.issuer, { error, error_description: description, state })
}
