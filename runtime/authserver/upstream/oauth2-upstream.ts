/**
 * A plain OAuth 2.0 provider: typed or registered credentials, and identity from wherever the provider puts it.
 *
 * Identity comes from the token response (`identityFromToken`), else from userinfo, else it is synthesized from the
 * access token: an opaque subject that another login will not repeat, without name or e-mail. Non-standard responses are
 * read through `tokenResponseMapping`. A 200 that carries an error (`error`, or `ok: false`) is a refusal.
 * Source: docs/specification/external-auth.md#oauth2Config, oauth2Config; RFC 6749 sections 4.1 and 6.
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
import type { UpstreamRegistration, UpstreamTokensRecord } from '../model/records.ts'
import {
  discoverForRegistration,
  forgetRegistration,
  obtainRegistration,
  type RegistrationParts,
} from './upstream-registration.ts'
import { notDiscovered, Retried } from './background-lookup.ts'
import { toUpstreamTokens } from './tokens.ts'
import type { Finished, Identity, LoginProof, Upstream, UpstreamLogin } from './upstream.ts'
import { fetchUserInfo } from './user-info.ts'

/** What can be asked of the provider: its endpoints, and what its own document says. */
interface Endpoints {
  readonly server: ServerMetadata & { readonly authorization_endpoint: string }
  readonly discovered: ServerMetadata | undefined
}

const freshMs = 3_600_000
/** After a failed registration. */
const registrationPauseMs = 5_000

export class OAuth2Upstream implements Upstream {
  readonly type = 'oauth2'
  readonly #config: OAuth2UpstreamSettings
  readonly #parts: RegistrationParts
  readonly #hint: ReturnType<typeof hintFor>
  readonly #endpoints: Retried<Endpoints>
  /** Tried from the start on: that a provider refuses us must show before somebody wants to log in. */
  readonly #registering: Retried<UpstreamRegistration> | undefined
  /** Turns the provider's token responses into standard ones. A configured mapping replaces the preset's. */
  readonly #mapOf: (grant: 'login' | 'refresh') => ((body: JsonRecord) => JsonRecord) | undefined
  #registered = false
  #refused: { readonly error: unknown; readonly untilMs: number } | undefined

  constructor(given: OAuth2UpstreamSettings, parts: RegistrationParts) {
    this.#hint = hintFor(given.provider)
    const config = { ...given, scopes: hintedScopes(this.#hint, given.scopes) }
    const { dcr, tokenResponseMapping } = config
    this.#config = config
    this.#parts = parts
    const { now } = parts
    const log = parts.log.child({ upstream: config.name })
    this.#endpoints = new Retried<Endpoints>({
      find: () => findEndpoints(config, parts),
      freshMs: dcr?.discoveryUrl === undefined ? Number.POSITIVE_INFINITY : freshMs,
      now,
      log,
      what: 'discovery of the upstream provider',
    })
    this.#registering =
      dcr &&
      new Retried<UpstreamRegistration>({
        find: async () => this.#register(dcr, (await this.#endpoints.get()).discovered),
        freshMs: Number.POSITIVE_INFINITY,
        now,
        log,
        what: 'registration at the upstream provider',
      })
    this.#mapOf = (grant) =>
      tokenResponseMapping ? mapper(tokenResponseMapping, grant) : hintedTokens(this.#hint)
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
      ? 'has not accepted the registration of this server yet'
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

  async finish(callback: URLSearchParams, proof: LoginProof): Promise<Finished> {
    const { discovered } = await this.#endpoints.get()
    const code = readAuthorizationCode(callback, discovered ?? {})
    if (proof.maxAgeSec !== undefined) {
      // A plain OAuth provider says nothing about when it saw the user last.
      throw new OAuthClientError('refused', 'the age of the login cannot be told', {
        error: 'login_required',
      })
    }
    const { now } = this.#parts
    const { fetch, body } = keepingBody(this.#parts.fetch)
    const { name, redirectUri } = this.#config
    const { codeVerifier } = proof
    const tokens = await this.#withClient((client, server) =>
      codeGrant({ server, client, fetch, now, code, redirectUri, codeVerifier, map: this.#mapOf('login') }),
    )
    const identity = await identityOf(
      this.#config,
      { accessToken: tokens.accessToken, body: body() },
      this.#parts.fetch,
    )
    return { identity, tokens: toUpstreamTokens(name, identity.subject, tokens, now()) }
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
    return toUpstreamTokens(this.#config.name, tokens.subject, fresh, now(), tokens)
  }

  /** A provider that refuses to register us is not asked again at every login. */
  async #register(
    dcr: UpstreamRegistrationConfig,
    discovered: ServerMetadata | undefined,
  ): Promise<UpstreamRegistration> {
    if (this.#refused && this.#parts.now() < this.#refused.untilMs) throw this.#refused.error
    try {
      const registration = await obtainRegistration(this.#config, dcr, discovered, this.#parts)
      this.#refused = undefined
      this.#registered = true
      return registration
    } catch (error) {
      this.#refused = { error, untilMs: this.#parts.now() + registrationPauseMs }
      throw error
    }
  }

  async #credentials(): Promise<{ client: OAuthClient; registration?: UpstreamRegistration }> {
    if (this.#config.dcr) {
      const { discovered } = await this.#endpoints.get()
      const registration = await this.#register(this.#config.dcr, discovered)
      const { clientId, clientSecret, authMethod } = registration
      return {
        registration,
        client: {
          clientId,
          ...(clientSecret === undefined ? {} : { clientSecret }),
          ...(authMethod === undefined ? {} : { authMethod }),
        },
      }
    }
    const secret = this.#config.clientSecret?.()
    const clientId = this.#config.clientId ?? ''
    return {
      client: hintedClient(this.#hint, {
        clientId,
        ...(secret === undefined ? {} : { clientSecret: secret }),
      }),
    }
  }

  /** Runs a token request; a registration that the provider forgot is dropped for the next try. */
  async #withClient<T>(request: (client: OAuthClient, server: ServerMetadata) => Promise<T>): Promise<T> {
    const { server, discovered } = await this.#endpoints.get()
    const { client, registration } = await this.#credentials()
    try {
      return await request(client, server)
    } catch (error) {
      if (tokenRefusal(error) === 'client') await this.#forget(registration, discovered)
      throw error
    }
  }

  /** The provider has forgotten the registration: another one is made, in the background. */
  async #forget(
    registration: UpstreamRegistration | undefined,
    discovered: ServerMetadata | undefined,
  ): Promise<void> {
    const { dcr } = this.#config
    if (!dcr || !registration) return
    await forgetRegistration(this.#config, dcr, discovered, registration, this.#parts)
    this.#registered = false
    this.#registering?.drop()
    this.#registering?.start()
  }
}

/** Who has signed in, from wherever the provider puts it. */
async function identityOf(
  { identityFromToken, userInfo }: OAuth2UpstreamSettings,
  { accessToken, body }: { readonly accessToken: string; readonly body: unknown },
  fetch: Fetch,
): Promise<Identity> {
  if (identityFromToken) return identityInBody(identityFromToken, body)
  if (!userInfo) return { subject: synthesizedSubject(accessToken), synthesized: true }
  const info = await fetchUserInfo(userInfo, accessToken, fetch)
  const { subject } = info
  if (subject === undefined) throw new OAuthClientError('protocol', 'the userinfo endpoint names no subject')
  return { ...info, subject, synthesized: false }
}

function identityInBody(
  paths: NonNullable<OAuth2UpstreamSettings['identityFromToken']>,
  body: unknown,
): Identity {
  const at = (path: string | undefined): unknown => (path === undefined ? undefined : follow(path, body))
  const subject = identifierOf(at(paths.subjectPath))
  if (subject === undefined) {
    throw new OAuthClientError('protocol', 'the token response has no subject at subjectPath')
  }
  const name = at(paths.namePath)
  const email = at(paths.emailPath)
  return {
    subject,
    synthesized: false,
    ...(typeof name === 'string' && name !== '' ? { name } : {}),
    ...(typeof email === 'string' && email !== '' ? { email } : {}),
  }
}

/** `tk-` and half of a SHA-256: the same for this access token only (docs/specification/external-auth.md#oauth2Config, oauth2Config). */
function synthesizedSubject(accessToken: string): string {
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

/** Remembers the last answer as it was sent, with every digit. */
function keepingBody(fetch: Fetch): { fetch: Fetch; body: () => unknown } {
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

function follow(path: string, body: unknown): unknown {
  const parsed = parseTokenPath(path)
  return typeof parsed === 'string' ? undefined : followTokenPath(parsed, body)
}

/**
 * Copies the mapped values to their standard names; the type is bearer by definition. A response to a refresh without
 * an access token at its path is read by the standard names, because some providers nest only the tokens of a login.
 */
function mapper(
  paths: NonNullable<OAuth2UpstreamSettings['tokenResponseMapping']>,
  grant: 'login' | 'refresh',
): (body: JsonRecord) => JsonRecord {
  return (body) => {
    if (body['ok'] === false) {
      throw new OAuthClientError('refused', 'the token endpoint reported an error', {
        error: typeof body['error'] === 'string' ? body['error'] : undefined,
      })
    }
    const accessToken = follow(paths.accessTokenPath, body)
    if (accessToken === undefined && grant === 'refresh') return { ...body, token_type: 'Bearer' }
    return {
      token_type: 'Bearer',
      access_token: accessToken,
      expires_in: follow(paths.expiresInPath, body),
      refresh_token: follow(paths.refreshTokenPath, body),
      scope: follow(paths.scopePath, body),
      ...(typeof body['id_token'] === 'string' ? { id_token: body['id_token'] } : {}),
    }
  }
}
