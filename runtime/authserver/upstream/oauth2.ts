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
  hintFor,
  type JsonRecord,
  type OAuthClient,
  OAuthClientError,
  readAuthorizationCode,
  refreshGrant,
  type ServerMetadata,
  typedServer,
} from '../../oauth/index.ts'
import { createHash } from 'node:crypto'
import type { UpstreamRegistration, UpstreamTokensRecord } from '../storage/records.ts'
import {
  discoverForRegistration,
  forgetRegistration,
  obtainRegistration,
  type RegistrationParts,
} from './registration.ts'
import { notDiscovered, Retried } from './retry.ts'
import { toUpstreamTokens } from './tokens.ts'
import type { Identity, LoginProof, Upstream } from './upstream.ts'
import { fetchUserInfo } from './user-info.ts'

/** What can be asked of the provider: its endpoints, and what its own document says. */
interface Endpoints {
  readonly server: ServerMetadata & { readonly authorization_endpoint: string }
  readonly discovered: ServerMetadata | undefined
}

const freshMs = 3_600_000
/** After a failed registration. */
const registrationPauseMs = 5_000

export function makeOAuth2Upstream(given: OAuth2UpstreamSettings, parts: RegistrationParts): Upstream {
  const hint = hintFor(given.provider)
  const config = { ...given, scopes: hintedScopes(hint, given.scopes) }
  const { now } = parts
  const log = parts.log.child({ upstream: config.name })
  const endpoints = new Retried<Endpoints>({
    find: () => findEndpoints(config, parts),
    freshMs: config.dcr?.discoveryUrl === undefined ? Number.POSITIVE_INFINITY : freshMs,
    now,
    log,
    what: 'discovery of the upstream provider',
  })
  const mapped = config.tokenResponseMapping ? { map: mapper(config.tokenResponseMapping) } : {}

  /** Tried from the start on: that a provider refuses us must show before somebody wants to log in. */
  const registering =
    config.dcr &&
    new Retried<UpstreamRegistration>({
      find: async () => register(config.dcr ?? {}, (await endpoints.get()).discovered),
      freshMs: Number.POSITIVE_INFINITY,
      now,
      log,
      what: 'registration at the upstream provider',
    })
  let registered = false
  let refused: { readonly error: unknown; readonly untilMs: number } | undefined

  /** A provider that refuses to register us is not asked again at every login. */
  async function register(
    dcr: UpstreamRegistrationConfig,
    discovered: ServerMetadata | undefined,
  ): Promise<UpstreamRegistration> {
    if (refused && now() < refused.untilMs) throw refused.error
    try {
      const registration = await obtainRegistration(config, dcr, discovered, parts)
      refused = undefined
      registered = true
      return registration
    } catch (error) {
      refused = { error, untilMs: now() + registrationPauseMs }
      throw error
    }
  }

  async function credentials(): Promise<{ client: OAuthClient; registration?: UpstreamRegistration }> {
    if (config.dcr) {
      const { discovered } = await endpoints.get()
      const registration = await register(config.dcr, discovered)
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
    const secret = config.clientSecret?.()
    const clientId = config.clientId ?? ''
    return {
      client: hintedClient(hint, { clientId, ...(secret === undefined ? {} : { clientSecret: secret }) }),
    }
  }

  /** Runs a token request; a registration that the provider forgot is dropped for the next try. */
  async function withClient<T>(
    request: (client: OAuthClient, server: ServerMetadata) => Promise<T>,
  ): Promise<T> {
    const { server, discovered } = await endpoints.get()
    const { client, registration } = await credentials()
    try {
      return await request(client, server)
    } catch (error) {
      if (
        config.dcr &&
        registration &&
        error instanceof OAuthClientError &&
        error.error === 'invalid_client'
      ) {
        await forgetRegistration(config, config.dcr, discovered, registration, parts)
        registered = false
        registering?.drop()
        registering?.start()
      }
      throw error
    }
  }

  async function finish(callback: URLSearchParams, proof: LoginProof) {
    const { discovered } = await endpoints.get()
    const code = readAuthorizationCode(callback, discovered ?? {})
    if (proof.maxAgeSec !== undefined) {
      // A plain OAuth provider says nothing about when it saw the user last.
      throw new OAuthClientError('refused', 'the age of the login cannot be told', {
        error: 'login_required',
      })
    }
    const { fetch, body } = keepingBody(parts.fetch)
    const { redirectUri } = config
    const { codeVerifier } = proof
    const tokens = await withClient((client, server) =>
      codeGrant({ server, client, fetch, now, code, redirectUri, codeVerifier, ...mapped }),
    )
    const identity = await identify(tokens.accessToken, body())
    return { identity, tokens: toUpstreamTokens(config.name, identity.subject, tokens, now()) }
  }

  async function identify(accessToken: string, body: unknown): Promise<Identity> {
    const { identityFromToken, userInfo } = config
    if (identityFromToken) {
      const at = (path: string | undefined): unknown => (path === undefined ? undefined : follow(path, body))
      const subject = identifierOf(at(identityFromToken.subjectPath))
      if (subject === undefined) {
        throw new OAuthClientError('protocol', 'the token response has no subject at subjectPath')
      }
      const name = at(identityFromToken.namePath)
      const email = at(identityFromToken.emailPath)
      return {
        subject,
        synthesized: false,
        ...(typeof name === 'string' && name !== '' ? { name } : {}),
        ...(typeof email === 'string' && email !== '' ? { email } : {}),
      }
    }
    if (userInfo) {
      const info = await fetchUserInfo(userInfo, accessToken, parts.fetch)
      const { subject } = info
      if (subject === undefined)
        throw new OAuthClientError('protocol', 'the userinfo endpoint names no subject')
      return { ...info, subject, synthesized: false }
    }
    return { subject: synthesizedSubject(accessToken), synthesized: true }
  }

  const typed = config.authorizationEndpoint
  return {
    name: config.name,
    type: 'oauth2',
    get issuer() {
      return endpoints.current?.discovered?.issuer
    },
    get host() {
      const known = endpoints.current?.server.authorization_endpoint ?? typed
      return known === undefined ? config.name : new URL(known).host
    },
    get origin() {
      const known = endpoints.current?.server.authorization_endpoint ?? typed
      return known === undefined ? undefined : new URL(known).origin
    },
    get notReady() {
      if (endpoints.current === undefined) return notDiscovered
      return config.dcr && !registered ? 'has not accepted the registration of this server yet' : undefined
    },
    start() {
      endpoints.start()
      registering?.start()
    },
    close() {
      endpoints.close()
      registering?.close()
    },

    async begin(login) {
      const { server } = await endpoints.get()
      const { client, registration } = await credentials()
      return authorizationUrl({
        endpoint: server.authorization_endpoint,
        clientId: client.clientId,
        redirectUri: config.redirectUri,
        scopes: config.scopes.length > 0 ? config.scopes : registration?.scopes,
        state: login.state,
        codeChallenge: login.codeChallenge,
        scopeParamName: hint?.scopeParamName,
        extra: { ...hintedParams(hint, {}), ...config.additionalAuthorizationParams },
      }).href
    },

    finish,

    async refresh(tokens: UpstreamTokensRecord) {
      const { refreshToken } = tokens
      if (refreshToken === undefined) {
        throw new OAuthClientError('refused', 'there is no refresh token', { error: 'invalid_grant' })
      }
      const { fetch } = parts
      const fresh = await withClient((client, server) =>
        refreshGrant({ server, client, fetch, now, refreshToken, ...mapped }),
      )
      return toUpstreamTokens(config.name, tokens.subject, fresh, now(), tokens)
    },
  } satisfies Upstream
}

/** `tk-` and half of a SHA-256: the same for this access token only (docs/specification/external-auth.md#oauth2Config, oauth2Config). */
function synthesizedSubject(accessToken: string): string {
  return `tk-${createHash('sha256').update(accessToken).digest('hex').slice(0, 32)}`
}

async function findEndpoints(config: OAuth2UpstreamSettings, parts: RegistrationParts): Promise<Endpoints> {
  const discovered = config.dcr ? await discoverForRegistration(config.dcr, parts) : undefined
  const authorization = config.authorizationEndpoint ?? discovered?.authorization_endpoint
  const token = config.tokenEndpoint ?? discovered?.token_endpoint
  if (authorization === undefined || token === undefined) {
    throw new OAuthClientError('protocol', 'the discovery document lacks an authorization or token endpoint')
  }
  const server = { ...typedServer(authorization, token), ...discovered }
  return {
    discovered,
    server: { ...server, authorization_endpoint: authorization, token_endpoint: token },
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

/** Copies the mapped values to their standard names; the type is bearer by definition. */
function mapper(paths: NonNullable<OAuth2UpstreamSettings['tokenResponseMapping']>) {
  return (body: JsonRecord): JsonRecord => {
    if (body['ok'] === false) {
      throw new OAuthClientError('refused', 'the token endpoint reported an error', {
        error: typeof body['error'] === 'string' ? body['error'] : undefined,
      })
    }
    return {
      token_type: 'Bearer',
      access_token: follow(paths.accessTokenPath, body),
      expires_in: follow(paths.expiresInPath, body),
      refresh_token: follow(paths.refreshTokenPath, body),
      scope: follow(paths.scopePath, body),
      ...(typeof body['id_token'] === 'string' ? { id_token: body['id_token'] } : {}),
    }
  }
}
