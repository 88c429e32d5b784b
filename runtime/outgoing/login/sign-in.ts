/**
 * Performs one interactive login: an authorization code with PKCE, through the user's browser and the local callback
 * server.
 *
 * Prints the URL for the user; errors state the next step. Does not retry. Also contains the token request for a
 * renewal.
 * Source: docs/reference/specification/proxy-command.md#rules, rules 2 and 4, --remote-auth-*; RFC 6749, 7636, 7591,
 * 8252, 8707, 9207, 9449.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  authorizationUrl,
  type Callback,
  codeGrant,
  hintedTokens,
  hintFor,
  isRefusedClient,
  type LoginSecrets,
  makeLoginSecrets,
  missingEndpoint,
  OAuthClientError,
  type OAuthClient,
  openCallback,
  type ProofKey,
  Prover,
  readAuthorizationCode,
  refusesClientAtLogin,
  refreshGrant,
  RemoteKeys,
  type TokenProofOptions,
  tokenRefusal,
  type TokenSet,
  unavailablePort,
  verifyIdToken,
} from '../../oauth/index.ts'
import type { Located } from './locate.ts'
import {
  type ClientCandidate,
  clientCandidates,
  type ClientParts,
  giveUpClient,
  type LoginClient,
} from './registration.ts'

export interface SignInParts extends ClientParts {
  /** Prints a line to the user's terminal. */
  readonly notify: (line: string) => void
  /** Opens the browser. Resolves to false on failure. */
  readonly open: (url: string) => Promise<boolean>
  /**
   * Shows the login to the user; replaces `notify` and `open`. Each call to `enter` returns a URL that works in one
   * browser, which alone can then complete the login.
   */
  readonly present?: ((enter: () => string) => void) | undefined
  /** True when the ID token is used later (token exchange) and must therefore be verified. */
  readonly needIdToken: boolean
}

export interface SignedInLogin extends LoginClient {
  readonly tokens: TokenSet
  /** The key that the tokens are bound to. */
  readonly proofKey: ProofKey | undefined
}

/**
 * Calls `adopt` with the login before the browser shows that the user is signed in. Rejects with OAuthClientError, or
 * with GatehouseError BACKEND_AUTH_FAILED or INVALID_CONFIG, or with the signal's reason.
 */
export async function signIn(
  located: Located,
  parts: SignInParts,
  adopt: (login: SignedInLogin) => void,
): Promise<void> {
  const callback = await openPort(parts)
  const dpop = located.dpop && { prover: new Prover(undefined, parts.now), use: located.dpop }
  try {
    for await (const candidate of clientCandidates(located, callback.redirectUri, parts)) {
      const { hasFallback, ...client } = candidate
      const next = (): void =>
        parts.log.warn('the authorization server rejected this client; trying another one', {
          clientId: client.client.clientId,
        })
      if (hasFallback && (await isRefused(located, client.client, callback, parts))) {
        next()
        continue
      }
      try {
        return await codeFlow({ located, candidate, callback, parts, dpop }, (tokens) =>
          adopt({ ...client, tokens, proofKey: boundKey(tokens, dpop) }),
        )
      } catch (error) {
        if (!hasFallback || !refusesClientAtLogin(error)) throw error
        next()
      }
    }
    throw new GatehouseError('INTERNAL')
  } finally {
    await callback.close()
  }
}

/** Returns the key that these tokens are bound to; undefined for bearer tokens. */
export function boundKey({ tokenType }: TokenSet, dpop: TokenProofOptions | undefined): ProofKey | undefined {
  return tokenType === 'dpop' ? dpop?.prover.key : undefined
}

function isRefused(
  located: Located,
  client: OAuthClient,
  callback: Callback,
  parts: SignInParts,
): Promise<boolean> {
  const request = authorizationRequest(located, client, callback, parts, makeLoginSecrets())
  return isRefusedClient(request, callback.redirectUri, parts)
}

function authorizationRequest(
  { server, scopes, resource, authorizeParams }: Located,
  { clientId }: OAuthClient,
  { redirectUri }: Callback,
  { settings }: SignInParts,
  { state, codeChallenge, nonce }: LoginSecrets,
  dpop?: TokenProofOptions,
): URL {
  const isBound = dpop !== undefined && dpop.use !== 'demanded'
  if (server.authorization_endpoint === undefined) throw missingEndpoint(server, 'authorization_endpoint')
  return authorizationUrl({
    endpoint: server.authorization_endpoint,
    clientId,
    redirectUri,
    scopes,
    scopeParamName: settings.scopeParamName ?? hintFor(settings.provider)?.scopeParamName,
    state,
    codeChallenge,
    nonce: scopes.includes('openid') ? nonce : undefined,
    resource,
    // Binds the code to the key (RFC 9449 section 10).
    extra: isBound ? { ...authorizeParams, dpop_jkt: dpop.prover.jkt } : authorizeParams,
  })
}

/** A dynamically registered client can use any port; a configured client can use only its registered port. */
async function openPort({ settings, log, notify }: SignInParts): Promise<Callback> {
  try {
    return await openCallback(settings.callbackPort, log)
  } catch (cause) {
    const detail = `--remote-auth-callback-port: ${unavailablePort(cause, settings.callbackPort)}`
    if (settings.clientId === undefined && settings.callbackPort !== 0) {
      notify(`${detail}. Using a free port instead.`)
      return openCallback(0, log)
    }
    throw new GatehouseError('INVALID_CONFIG', { detail, cause })
  }
}

interface CodeFlow {
  readonly located: Located
  readonly candidate: ClientCandidate
  readonly callback: Callback
  readonly parts: SignInParts
  readonly dpop: TokenProofOptions | undefined
}

async function codeFlow(
  { located, candidate, callback, parts, dpop }: CodeFlow,
  adopt: (tokens: TokenSet) => void,
): Promise<void> {
  const { settings, notify } = parts
  const { client } = candidate
  const { server, issuer, scopes, resource } = located
  const secrets = makeLoginSecrets()
  const openid = scopes.includes('openid')
  const request = authorizationRequest(located, client, callback, parts, secrets, dpop).href
  if (parts.present) parts.present(() => callback.entrance(request))
  else await show(request, parts)
  notify('Waiting for OAuth callback')
  const timeout = AbortSignal.timeout(settings.timeoutMs)
  const redirect = await callback
    .wait(secrets.state, AbortSignal.any([timeout, parts.signal]))
    .catch((error: unknown) => {
      if (!timeout.aborted || parts.signal.aborted) throw error
      const flag = parts.present ? '' : ' (--remote-auth-timeout)'
      const detail = `the login was not completed within ${settings.timeoutMs / 1000}s${flag}`
      if (!candidate.hasFallback) throw new GatehouseError('BACKEND_AUTH_FAILED', { detail })
      // Many servers report a rejected client on a page that looks like any other page.
      giveUpClient(candidate, located, parts)
      throw new GatehouseError('BACKEND_AUTH_FAILED', {
        detail:
          `${detail}. The authorization server may no longer accept this client, ` +
          'so the next login uses a new one',
      })
    })
  let ok = false
  try {
    const code = readAuthorizationCode(redirect.params, { ...server, issuer })
    const tokens = await codeGrant({
      server,
      client,
      fetch: parts.fetch,
      signal: parts.signal,
      now: parts.now,
      code,
      redirectUri: callback.redirectUri,
      codeVerifier: secrets.codeVerifier,
      resource,
      map: hintedTokens(hintFor(settings.provider)),
      dpop,
    })
    if (parts.needIdToken)
      await checkIdToken(tokens, located, client, openid ? secrets.nonce : undefined, parts)
    adopt(tokens)
    ok = true
  } catch (error) {
    // The next login must not use a client that the server no longer recognizes.
    if (tokenRefusal(error) === 'client') giveUpClient(candidate, located, parts)
    throw error
  } finally {
    redirect.finish({ ok })
  }
}

/** Uses a refresh token. Rejects with OAuthClientError, or with the signal's reason. */
export function renewTokens(
  { server, resource }: Located,
  client: OAuthClient,
  { refreshToken, dpop }: { readonly refreshToken: string; readonly dpop: TokenProofOptions | undefined },
  { settings, fetch, signal, now }: ClientParts,
): Promise<TokenSet> {
  const map = hintedTokens(hintFor(settings.provider))
  return refreshGrant({ server, client, refreshToken, resource, map, dpop, fetch, signal, now })
}

async function show(url: string, { settings, notify, open }: SignInParts): Promise<void> {
  if (settings.skipBrowser) {
    notify(`Please open this URL in your browser: ${url}`)
    return
  }
  notify(`Opening browser: ${url}`)
  if (!(await open(url))) notify(`Please manually open this URL in your browser: ${url}`)
}

async function checkIdToken(
  tokens: TokenSet,
  located: Located,
  client: OAuthClient,
  nonce: string | undefined,
  parts: SignInParts,
): Promise<void> {
  const { server, issuer } = located
  const jwksUri = server.jwks_uri
  if (tokens.idToken === undefined || issuer === undefined || jwksUri === undefined) {
    throw new OAuthClientError(
      'protocol',
      'the login returned no verifiable ID token, which the token exchange requires',
    )
  }
  const keys = new RemoteKeys({ fetch: parts.fetch, locate: async () => jwksUri, now: parts.now })
  try {
    await verifyIdToken(tokens.idToken, { keys, issuer, clientId: client.clientId, nonce, now: parts.now })
  } catch (cause) {
    throw new OAuthClientError('protocol', 'the login’s ID token is invalid', { cause })
  }
}
