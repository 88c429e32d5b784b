/**
 * The authorization endpoint: checks a request completely, then redirects the browser to the consent page.
 *
 * Until the redirect URI is known to belong to the client, errors are shown here. After that, errors are sent to the
 * client, with state and issuer. PKCE and the resource are also checked here, so that no user signs in for a code that
 * the client cannot redeem.
 * Source: RFC 6749 section 4.1.1, OAuth 2.1 section 4.1.1, RFC 7636 section 4.4.1, RFC 8707 section 2, RFC 9207, RFC
 * 9700 section 4.1, OpenID Connect Core section 3.1.2.1.
 */
import type { Exchange } from '../../net/index.ts'
import { canonicalResource } from '../../oauth/index.ts'
import { isUnownedRedirect, matchesRedirectUri, redirectHost } from '../clients/redirect-uri.ts'
import { parseScope, supportedScopes, within } from '../model/scopes.ts'
import { leavingPage } from '../login/pages.ts'
import type { AuthServerContext } from '../login/context.ts'
import { limitRate, loginMs } from '../storage/limits.ts'
import type { AuthRequest, RegisteredClient } from '../model/records.ts'
import { makeErrorRedirect } from '../login/login-flow.ts'
import { prefersPage, sendPage, sendRedirect, toOAuthError } from './responses.ts'
import { type Parameters, readForm, readQuery } from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { randomId } from '../model/identifiers.ts'

interface Draft {
  readonly exchange: Exchange
  readonly parameters: Parameters
  client?: RegisteredClient
  redirectUri?: string
  scopes: readonly string[]
  resources: readonly string[]
  prompt: readonly string[]
  maxAgeSec: number | undefined
}

type AuthorizeStep = (draft: Draft, context: AuthServerContext) => void | Promise<void>

/** Parameters whose errors are shown to the user, because the client is unknown. */
const beforeRedirect: readonly AuthorizeStep[] = [limitRequests, findClient, matchRedirect]
/** Parameters whose errors are sent to the client. */
const afterRedirect: readonly AuthorizeStep[] = [
  refuseRepeated,
  refuseOversized,
  refuseUnsupported,
  checkResponseType,
  checkPkce,
  checkKeyThumbprint,
  checkScopes,
  checkResources,
  checkPrompt,
  checkMaxAge,
]

/** GET with a query, or POST with a form (OpenID Connect Core section 3.1.2.1). */
export async function authorize(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const parameters = exchange.req.method === 'POST' ? await readForm(exchange) : readQuery(exchange)
  const draft: Draft = { exchange, parameters, scopes: [], resources: [], prompt: [], maxAgeSec: undefined }
  for (const step of beforeRedirect) await step(draft, context)
  const { client, redirectUri } = draft
  if (!client || redirectUri === undefined)
    throw new OAuthError('server_error', 'the request was not checked')
  const state = parameters.all('state').length === 1 ? parameters.get('state') : undefined
  try {
    for (const step of afterRedirect) await step(draft, context)
    const handle = await storeRequest(draft, { client, redirectUri, state }, context)
    sendRedirect(exchange, `${context.urls.consent}?request=${handle}`)
  } catch (error) {
    const failure = toOAuthError(error)
    if (failure.status >= 500)
      context.log.error('authorization request failed', { err: failure.cause ?? failure })
    const { error: code, message: description, status } = failure
    const location = makeErrorRedirect(context, { redirectUri, state }, { error: code, description })
    if (needsConfirmation(draft, redirectUri))
      sendPage(exchange, leavingPage(redirectHost(redirectUri), location), { status })
    else sendRedirect(exchange, location)
  }
}

/**
 * True when the user must confirm the redirect. An untrusted client can register a web address and send users here with
 * a request that fails. The error response would then redirect those users to the client's site in this server's name
 * (RFC 9700 section 4.11.2). Silent requests (`prompt=none`), clients that do not display pages, and redirects to the
 * user's own machine need no confirmation.
 */
function needsConfirmation({ exchange, parameters }: Draft, redirectUri: string): boolean {
  return (
    prefersPage(exchange) &&
    !isUnownedRedirect(redirectUri) &&
    !parseScope(parameters.get('prompt') ?? '').includes('none')
  )
}

async function limitRequests({ exchange }: Draft, context: AuthServerContext): Promise<void> {
  await limitRate(context.state.store, 'authorize', context.addressOf(exchange))
}

async function findClient(draft: Draft, context: AuthServerContext): Promise<void> {
  const { parameters, exchange } = draft
  if (parameters.all('client_id').length > 1) throw new OAuthError('invalid_request', 'client_id is repeated')
  const client = await context.clients.find(parameters.require('client_id'), context.addressOf(exchange))
  if (!client)
    throw new OAuthError(
      'invalid_client',
      'this client is not registered here, or its metadata document cannot be read',
    )
  draft.client = client
}

/** RFC 9700 section 4.1.3: exact comparison, and never a redirect to another address. */
function matchRedirect(draft: Draft): void {
  const { parameters, client } = draft
  const registered = client?.redirectUris ?? []
  const [given, ...more] = parameters.all('redirect_uri')
  if (more.length > 0) throw new OAuthError('invalid_request', 'redirect_uri is repeated')
  if (given === undefined) {
    const [only, ...others] = registered
    const isOidc = parseScope(parameters.get('scope') ?? '').includes('openid')
    if (only === undefined || others.length > 0 || isOidc) {
      throw new OAuthError('invalid_request', 'the redirect_uri parameter is required')
    }
    draft.redirectUri = only
    return
  }
  if (!matchesRedirectUri(given, registered)) {
    throw new OAuthError('invalid_request', 'this server does not accept this redirect_uri for the client')
  }
  draft.redirectUri = given
}

function refuseRepeated({ parameters }: Draft): void {
  if (parameters.repeated() !== undefined) throw new OAuthError('invalid_request', 'a parameter is repeated')
}

/**
 * Limits the data that is stored until the login ends, because any untrusted client can start a login. RFC 6749
 * appendix A.5 allows visible ASCII in `state`; JSON would encode a control character as six characters.
 */
function refuseOversized({ parameters }: Draft): void {
  for (const [name, max] of [
    ['state', 4096],
    ['nonce', 1024],
  ] as const) {
    const value = parameters.get(name) ?? ''
    if (value.length > max) {
      throw new OAuthError('invalid_request', `${name} must have at most ${max} characters`)
    }
    if (!/^[\x20-\x7e]*$/.test(value)) {
      throw new OAuthError('invalid_request', `${name} must be visible ASCII characters and spaces`)
    }
  }
  if (/\p{Cc}/u.test(parameters.get('login_hint') ?? '')) {
    throw new OAuthError('invalid_request', 'login_hint must not contain control characters')
  }
}

function refuseUnsupported({ parameters }: Draft): void {
  if (parameters.has('request'))
    throw new OAuthError('request_not_supported', 'request objects are not supported')
  if (parameters.has('request_uri')) {
    throw new OAuthError('request_uri_not_supported', 'request objects are not supported')
  }
  if (parameters.has('registration')) {
    throw new OAuthError('registration_not_supported', 'the registration parameter is not supported')
  }
  const mode = parameters.get('response_mode')
  if (mode !== undefined && mode !== 'query') {
    throw new OAuthError('unsupported_response_mode', 'only response_mode=query is supported')
  }
}

function checkResponseType({ parameters }: Draft): void {
  if (parameters.require('response_type') !== 'code') {
    throw new OAuthError('unsupported_response_type', 'only response_type=code is supported')
  }
}

/** Without S256, a stolen code could be redeemed. */
function checkPkce({ parameters }: Draft): void {
  const challenge = parameters.get('code_challenge')
  if (challenge === undefined)
    throw new OAuthError('invalid_request', 'PKCE is required: code_challenge is missing')
  if (parameters.get('code_challenge_method') !== 'S256') {
    throw new OAuthError('invalid_request', 'PKCE with code_challenge_method=S256 is required')
  }
  if (!/^[\w-]{43}$/.test(challenge)) {
    throw new OAuthError('invalid_request', 'code_challenge must be 43 base64url characters')
  }
}

/** RFC 9449 section 10. */
function checkKeyThumbprint({ parameters }: Draft, { tokenProofs }: AuthServerContext): void {
  const jkt = parameters.get('dpop_jkt')
  if (tokenProofs && jkt !== undefined && !/^[\w-]{43}$/.test(jkt))
    throw new OAuthError('invalid_request', 'dpop_jkt must be 43 base64url characters')
}

/** Unsupported scopes are ignored (RFC 6749 section 3.3). The token response lists the granted scopes. */
function checkScopes(draft: Draft, { config }: AuthServerContext): void {
  const registered = draft.client?.scopes ?? []
  const requested = supportedScopes(parseScope(draft.parameters.get('scope') ?? ''), config)
  if (!within(requested, registered)) {
    throw new OAuthError('invalid_scope', 'a requested scope is not registered for this client')
  }
  draft.scopes = requested.length > 0 ? requested : registered
}

function checkResources(draft: Draft, context: AuthServerContext): void {
  draft.resources = readResources(draft.parameters, context)
}

/** Limits the number of comparisons between requested and served resources. */
const maxResources = 100

/** Returns the requested resources in their configured spelling. Throws OAuthError invalid_target (RFC 8707). */
export function readResources(parameters: Parameters, context: AuthServerContext): readonly string[] {
  return findResources(parameters.all('resource'), context)
}

/**
 * Returns the distinct resources with these URLs. Throws OAuthError invalid_target for a resource that is not served
 * here.
 */
export function findResources(
  requested: readonly string[],
  { config: { allowedAudiences } }: Pick<AuthServerContext, 'config'>,
): readonly string[] {
  if (requested.length > maxResources)
    throw new OAuthError('invalid_target', `at most ${maxResources} resources can be requested`)
  const found = requested.map((resource) => {
    const served = isResource(resource)
      ? allowedAudiences.find((audience) => sameResource(audience, resource))
      : undefined
    if (served === undefined)
      throw new OAuthError('invalid_target', 'a requested resource is not served here')
    return served
  })
  return [...new Set(found)]
}

function isResource(resource: string): boolean {
  return URL.canParse(resource) && !resource.includes('#') && /^https?:$/.test(new URL(resource).protocol)
}

/** Ignores default ports, one trailing slash, and case in the scheme and the host (MCP authorization). */
function sameResource(a: string, b: string): boolean {
  const plain = (url: string): string => canonicalResource(url).replace(/\/$/, '')
  return plain(a) === plain(b)
}

const prompts: ReadonlySet<string> = new Set(['none', 'login', 'consent', 'select_account'])

function checkPrompt(draft: Draft): void {
  const prompt = parseScope(draft.parameters.get('prompt') ?? '')
  if (prompt.some((value) => !prompts.has(value)))
    throw new OAuthError('invalid_request', 'prompt is not supported')
  if (prompt.includes('none') && prompt.length > 1) {
    throw new OAuthError('invalid_request', 'prompt=none cannot be combined')
  }
  draft.prompt = prompt
}

function checkMaxAge(draft: Draft): void {
  const value = draft.parameters.get('max_age')
  if (value === undefined) return
  if (!/^\d{1,9}$/.test(value)) throw new OAuthError('invalid_request', 'max_age must be a number of seconds')
  draft.maxAgeSec = Number(value)
}

/** Drops a hint that is too long, because a truncated hint would identify another user. */
function readLoginHint(parameters: Parameters): string | undefined {
  const hint = parameters.get('login_hint')
  return hint !== undefined && Buffer.byteLength(hint) <= 256 ? hint : undefined
}

/** Stores the checked request. Returns the request's handle, which is all that the browser receives. */
async function storeRequest(
  { parameters, scopes, resources, prompt, maxAgeSec }: Draft,
  about: {
    readonly client: RegisteredClient
    readonly redirectUri: string
    readonly state: string | undefined
  },
  context: AuthServerContext,
): Promise<string> {
  const { client, redirectUri, state } = about
  const request: AuthRequest = {
    clientId: client.id,
    clientKind: client.kind,
    clientName: client.name,
    redirectUri,
    redirectGiven: parameters.has('redirect_uri'),
    state,
    codeChallenge: parameters.require('code_challenge'),
    scopes,
    resources: resources.length > 0 ? resources : context.config.allowedAudiences,
    refreshable: client.grantTypes.includes('refresh_token') && scopes.includes('offline_access'),
    nonce: parameters.get('nonce'),
    prompt,
    loginHint: readLoginHint(parameters),
    maxAgeSec,
    codeJkt: context.tokenProofs && parameters.get('dpop_jkt'),
  }
  const handle = randomId()
  await context.state.requests.put(handle, request, loginMs)
  return handle
}
