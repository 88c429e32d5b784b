/**
 * A plain OAuth 2.0 provider with configured or registered credentials.
 *
 * Identity comes from the token response (`identityFromToken`), otherwise from userinfo. Otherwise, it is synthesized
 * from the access token: an opaque subject that changes with every login, without a name or email.
 * `tokenResponseMapping` reads non-standard responses. A 200 response that contains an error (`error`, or `ok: false`)
 * is treated as a rejection.
 * Source: docs/reference/specification/external-auth.md#oauth2Config, oauth2Config; RFC 6749 sections 4.1 and 6.
 */
import {
  followTokenPath,
  identifierOf,
  type OAuth2UpstreamSettings,
  parseKeepingDigits,
  parseTokenPath,
  type UpstreamRegistrationConfig,
} from '../../config/index.ts'
import type { Fetch } from '../../net/index.ts'
import {
  authorizationUrl,
  codeGrant,
  hintedClient,
  hintedParams,
  hintedScopes,
  hintedTokens,
  hintFor,
  missingEndpoint,
  type JsonRecord,
  type OAuthClient,
  OAuthClientError,
  readAuthorizationCode,
  refreshGrant,
  type ServerMetadata,
  tokenRefusal,
  typedServer,
} from '../../oauth/index.ts'
import { createHash } from 'node:crypto'
import { isFields } from '../../../schemas/index.ts'
import { groupsIn } from '../model/offered.ts'
import type { UpstreamRegistration, UpstreamTokensRecord } from '../model/records.ts'
import {
  discoverForRegistration,
  forgetRegistration,
  obtainRegistration,
  type RegistrationParts,
  type RegistrationTarget,
} from './upstream-registration.ts'
import { BackgroundLookup, notDiscovered } from './background-lookup.ts'
import {
  type FinishedLogin,
  type Identity,
  type LoginProof,
  toUpstreamTokens,
  type Upstream,
  type UpstreamLogin,
} from './upstream.ts'
import { upstreamClient } from './upstream-client.ts'
import { fetchUserInfo } from './user-info.ts'

/** The provider's endpoints and its discovery document. */
interface Endpoints {
  readonly server: ServerMetadata & { readonly authorization_endpoint: string }
  readonly discovered: ServerMetadata | undefined
}

const freshMs = 3_600_000
/** Pause before the next attempt to register, after a failed registration. */
const registrationPauseMs = 5_000

export class OAuth2Upstream implements Upstream {
  readonly type = 'oauth2'
  readonly #config: OAuth2UpstreamSettings
  readonly #parts: RegistrationParts
  readonly #hint: ReturnType<typeof hintFor>
  readonly #readClient: () => OAuthClient
  readonly #endpoints: BackgroundLookup<Endpoints>
  /** Starts in the constructor, so that a rejected registration is reported before the first login. */
  readonly #registering: BackgroundLookup<UpstreamRegistration> | undefined
  /** Converts token responses to the standard form. A configured mapping replaces the one from the preset. */
  readonly #mapOf: (grant: 'login' | 'refresh') => ((body: JsonRecord) => JsonRecord) | undefined
  #registered = false
  #rejected: { readonly error: unknown; readonly untilMs: number } | undefined

  constructor(given: OAuth2UpstreamSettings, parts: RegistrationParts) {
    this.#hint = hintFor(given.provider)
    const config = { ...given, scopes: hintedScopes(this.#hint, given.scopes) }
    const { dcr, tokenResponseMapping } = config
    this.#config = config
    this.#parts = parts
    const { now } = parts
    const log = parts.log.child({ upstream: config.name })
    this.#readClient = upstreamClient(config, { now, log, audience: config.tokenEndpoint })
    this.#endpoints = new BackgroundLookup<Endpoints>({
      find: () => findEndpoints(config, parts),
      freshMs: dcr?.discoveryUrl === undefined ? Number.POSITIVE_INFINITY : freshMs,
      now,
      log,
      what: 'discovery of the upstream provider',
    })
    this.#registering =
      dcr &&
      new BackgroundLookup<UpstreamRegistration>({
        find: async () => this.#register(await this.#registrationTarget(dcr)),
        freshMs: Number.POSITIVE_INFINITY,
        now,
        log,
        what: 'registration with the upstream provider',
      })
    this.#mapOf = (grant) =>
      tokenResponseMapping ? makeMapper(tokenResponseMapping, grant) : hintedTokens(this.#hint)
  }

  get name(): string {
    return this.#config.name
  }

  get issuer(): string | undefined {
    return this.#endpoints.current?.discovered?.issuer
  }

  get host(): string {
    return this.#authorizationEndpoint?.host ?? this.#config.name
  }

  get origin(): string | undefined {
    return this.#authorizationEndpoint?.origin
  }

  get #authorizationEndpoint(): URL | undefined {
    const known = this.#endpoints.current?.server.authorization_endpoint ?? this.#config.authorizationEndpoint
    return known === undefined ? undefined : new URL(known)
  }

  get notReady(): string | undefined {
    if (this.#endpoints.current === undefined) return notDiscovered
    return this.#config.dcr && !this.#registered
      ? 'has not accepted this server’s registration yet'
      : undefined
  }

  start(): void {
    this.#endpoints.start()
    this.#registering?.start()
  }

  close(): void {
    this.#endpoints.close()
    this.#registering?.close()
  }

  async begin(login: UpstreamLogin): Promise<string> {
    const { server } = await this.#endpoints.get()
    const { client, registration } = await this.#credentials()
    return authorizationUrl({
      endpoint: server.authorization_endpoint,
      clientId: client.clientId,
      redirectUri: this.#config.redirectUri,
      scopes: this.#config.scopes.length > 0 ? this.#config.scopes : registration?.scopes,
      state: login.state,
      codeChallenge: login.codeChallenge,
      scopeParamName: this.#hint?.scopeParamName,
      extra: { ...hintedParams(this.#hint, {}), ...this.#config.additionalAuthorizationParams },
    }).href
  }

  async finish(callback: URLSearchParams, proof: LoginProof): Promise<FinishedLogin> {
    const { discovered } = await this.#endpoints.get()
    const code = readAuthorizationCode(callback, discovered ?? {})
    if (proof.maxAgeSec !== undefined) {
      // A plain OAuth provider does not report when it authenticated the user.
      throw new OAuthClientError('refused', 'the login time is unknown', {
        error: 'login_required',
      })
    }
    const { now } = this.#parts
    const { fetch, body } = recordBody(this.#parts.fetch)
    const { name, redirectUri } = this.#config
    const { codeVerifier } = proof
    const tokens = await this.#withClient((client, server) =>
      codeGrant({ server, client, fetch, now, code, redirectUri, codeVerifier, map: this.#mapOf('login') }),
    )
    const response = { accessToken: tokens.accessToken, body: body() }
    const identity = await readIdentity(this.#config, response, this.#parts)
    const account = { provider: name, subject: identity.subject, obtainedAtMs: now() }
    return { identity, tokens: toUpstreamTokens(account, tokens) }
  }

  async refresh(tokens: UpstreamTokensRecord): Promise<UpstreamTokensRecord> {
    const { refreshToken } = tokens
    if (refreshToken === undefined) {
      throw new OAuthClientError('refused', 'there is no refresh token', { error: 'invalid_grant' })
    }
    const { fetch, now } = this.#parts
    const fresh = await this.#withClient((client, server) =>
      refreshGrant({ server, client, fetch, now, refreshToken, map: this.#mapOf('refresh') }),
    )
    return toUpstreamTokens({ ...tokens, obtainedAtMs: now() }, fresh, tokens)
  }

  async #registrationTarget(dcr: UpstreamRegistrationConfig): Promise<RegistrationTarget> {
    return { config: this.#config, dcr, metadata: (await this.#endpoints.get()).discovered }
  }

  /** Pauses after a rejected registration, so that the registration is not repeated for every login. */
  async #register(target: RegistrationTarget): Promise<UpstreamRegistration> {
    if (this.#rejected && this.#parts.now() < this.#rejected.untilMs) throw this.#rejected.error
    try {
      const registration = await obtainRegistration(target, this.#parts)
      this.#rejected = undefined
      this.#registered = true
      return registration
    } catch (error) {
      this.#rejected = { error, untilMs: this.#parts.now() + registrationPauseMs }
      throw error
    }
  }

  async #credentials(): Promise<{ client: OAuthClient; registration?: UpstreamRegistration }> {
    const { dcr } = this.#config
    if (!dcr) return { client: hintedClient(this.#hint, this.#readClient()) }
    const registration = await this.#register(await this.#registrationTarget(dcr))
    return { registration, client: registration }
  }

  /** Runs a token request. If the provider does not recognize the registration, this server registers again. */
  async #withClient<T>(request: (client: OAuthClient, server: ServerMetadata) => Promise<T>): Promise<T> {
    const { server } = await this.#endpoints.get()
    const { client, registration } = await this.#credentials()
    try {
      return await request(client, server)
    } catch (error) {
      if (tokenRefusal(error) === 'client' && registration) await this.#registerAgain(registration)
      throw error
    }
  }

  /** Discards a registration that the provider does not recognize, and registers again in the background. */
  async #registerAgain(stale: UpstreamRegistration): Promise<void> {
    const { dcr } = this.#config
    if (!dcr) return
    await forgetRegistration(await this.#registrationTarget(dcr), stale, this.#parts)
    this.#registered = false
    this.#registering?.drop()
    this.#registering?.start()
  }
}

/** Returns the user who has signed in. */
async function readIdentity(
  { identityFromToken, userInfo }: OAuth2UpstreamSettings,
  { accessToken, body }: { readonly accessToken: string; readonly body: unknown },
  { fetch, groupClaim }: RegistrationParts,
): Promise<Identity> {
  if (identityFromToken) {
    const groups = groupsIn(isFields(body) ? body : {}, groupClaim)
    return { ...readIdentityFromBody(identityFromToken, body), groups }
  }
  if (!userInfo) return { subject: synthesizeSubject(accessToken), synthesized: true }
  const info = await fetchUserInfo(userInfo, accessToken, fetch)
  const { subject, name, email } = info
  if (subject === undefined)
    throw new OAuthClientError('protocol', 'the userinfo endpoint returned no subject')
  return { subject, name, email, synthesized: false, groups: groupsIn(info.claims, groupClaim) }
}

function readIdentityFromBody(
  paths: NonNullable<OAuth2UpstreamSettings['identityFromToken']>,
  body: unknown,
): Identity {
  const at = (path: string | undefined): unknown => (path === undefined ? undefined : valueAt(path, body))
  const subject = identifierOf(at(paths.subjectPath))
  if (subject === undefined) {
    throw new OAuthClientError('protocol', 'the token response has no subject at subjectPath')
  }
  return { subject, synthesized: false, name: textOf(at(paths.namePath)), email: textOf(at(paths.emailPath)) }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * Returns `tk-` followed by half of the access token's SHA-256
 * (docs/reference/specification/external-auth.md#oauth2Config, oauth2Config).
 */
function synthesizeSubject(accessToken: string): string {
  return `tk-${createHash('sha256').update(accessToken).digest('hex').slice(0, 32)}`
}

async function findEndpoints(config: OAuth2UpstreamSettings, parts: RegistrationParts): Promise<Endpoints> {
  const discovered = config.dcr ? await discoverForRegistration(config.dcr, parts) : undefined
  const authorization = config.authorizationEndpoint ?? discovered?.authorization_endpoint
  const token = config.tokenEndpoint ?? discovered?.token_endpoint
  if (authorization === undefined) throw missingEndpoint(discovered ?? {}, 'authorization_endpoint')
  if (token === undefined) throw missingEndpoint(discovered ?? {}, 'token_endpoint')
  return {
    discovered,
    server: {
      ...typedServer(authorization, token),
      ...discovered,
      authorization_endpoint: authorization,
      token_endpoint: token,
    },
  }
}

/** Records the body of the last response, so that long numbers keep all their digits. */
function recordBody(fetch: Fetch): { fetch: Fetch; body: () => unknown } {
  let last = ''
  return {
    async fetch(url, init) {
      const response = await fetch(url, init)
      last = await response.text()
      return new Response(last, { status: response.status, headers: response.headers })
    },
    body() {
      try {
        return parseKeepingDigits(last)
      } catch {
        return undefined
      }
    },
  }
}

function valueAt(path: string, body: unknown): unknown {
  const parsed = parseTokenPath(path)
  return typeof parsed === 'string' ? undefined : followTokenPath(parsed, body)
}

/**
 * Copies the mapped values to their standard names, with the token type bearer. If a refresh response has no access
 * token at the mapped path, the standard names are used. Some providers nest tokens only in login responses.
 */
function makeMapper(
  paths: NonNullable<OAuth2UpstreamSettings['tokenResponseMapping']>,
  grant: 'login' | 'refresh',
): (body: JsonRecord) => JsonRecord {
  return (body) => {
    if (body['ok'] === false) {
      throw new OAuthClientError('refused', 'the token endpoint reported an error', {
        error: typeof body['error'] === 'string' ? body['error'] : undefined,
      })
    }
    const accessToken = valueAt(paths.accessTokenPath, body)
    if (accessToken === undefined && grant === 'refresh') return { ...body, token_type: 'Bearer' }
    return {
      token_type: 'Bearer',
      access_token: accessToken,
      expires_in: valueAt(paths.expiresInPath, body),
      refresh_token: valueAt(paths.refreshTokenPath, body),
      scope: valueAt(paths.scopePath, body),
      ...(typeof body['id_token'] === 'string' ? { id_token: body['id_token'] } : {}),
    }
  }
}
