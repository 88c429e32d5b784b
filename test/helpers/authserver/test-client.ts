/** An OAuth client of an authorization server under test, with parsed results, and the browser of its user. */
import { decodeJwt, type JWTPayload } from 'jose'
import type { Test } from 'tap'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import {
  authorizeUrl,
  jsonOf,
  pkce,
  postRegistration,
  redirectUri,
  type Rig,
  type RigOptions,
  startAuthServer,
  textOf,
  tokenRequest,
} from './authserver.ts'
import { Browser, type Shown } from './cookie-browser.ts'

type Server = Pick<Rig, 'issuer'>
type Parameters = Readonly<Record<string, string | undefined>>

/** A redirect URI of a web client, whose consent is remembered. */
export const webRedirect = 'https://app.example.com/cb'

/** The page or redirect that an authorization request ends with. */
export interface Answer extends Shown {
  /** Query of the redirect to the client; empty for a page. */
  readonly query: Readonly<Record<string, string>>
  readonly code: string
  readonly error: string | undefined
  readonly verifier: string
}

/** A response of the token endpoint. */
export interface TokenAnswer {
  /** Status and OAuth error code, such as `400 invalid_grant`; `200` for tokens. */
  readonly outcome: string
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
  readonly scope: string
  /** Empty when the response contains none. */
  readonly access: string
  readonly refresh: string
  /** Claims of the access token and the ID token. */
  readonly claims: JWTPayload
  readonly idClaims: JWTPayload
}

export class TestClient {
  readonly rig: Server
  readonly registration: Readonly<Record<string, unknown>>
  readonly browser: Browser

  constructor(rig: Server, registration: Readonly<Record<string, unknown>>, browser = new Browser()) {
    this.rig = rig
    this.registration = registration
    this.browser = browser
  }

  static async register(rig: Server, metadata: object = {}, browser?: Browser): Promise<TestClient> {
    const all = { client_name: 'Test Client', redirect_uris: [redirectUri], ...metadata }
    const response = await postRegistration(rig, all)
    const body = await jsonOf(response)
    if (response.status !== 201) throw new Error(`${response.status} ${JSON.stringify(body)}`)
    return new TestClient(rig, body, browser)
  }

  get id(): string {
    return textOf(this.registration['client_id'])
  }

  get redirectUri(): string {
    const uris = this.registration['redirect_uris']
    return Array.isArray(uris) ? textOf(uris[0]) : redirectUri
  }

  /** The same client with another browser, or at another replica. */
  with({ browser = new Browser(), rig = this.rig }: { browser?: Browser; rig?: Server } = {}): TestClient {
    return new TestClient(rig, this.registration, browser)
  }

  url(parameters: Parameters = {}): URL {
    return authorizeUrl(this.rig, {
      client_id: this.id,
      redirect_uri: this.redirectUri,
      code_challenge: pkce().challenge,
      ...parameters,
    })
  }

  /** Opens the authorization endpoint in the browser. Stops at a page, or at a URL that starts with `stopAt`. */
  async authorize(parameters: Parameters = {}, stopAt?: string): Promise<Answer> {
    const { verifier, challenge } = pkce()
    const url = this.url({ code_challenge: challenge, state: 'client-state', ...parameters })
    return this.#answer(
      await this.browser.open(url, stopAt ?? parameters['redirect_uri'] ?? this.redirectUri),
      verifier,
    )
  }

  /** Presses a button on a page. `untick` lists the providers to leave out. */
  async consent(
    page: Answer,
    action = 'approve',
    untick: readonly string[] = [],
    stopAt = this.redirectUri,
  ): Promise<Answer> {
    return this.#answer(await this.browser.press(page, action, stopAt, untick), page.verifier)
  }

  /** Authorizes the client, and approves the consent page if it is shown. */
  async login(parameters: Parameters = {}): Promise<Answer> {
    const answer = await this.authorize(parameters)
    return answer.status === 200
      ? this.consent(answer, 'approve', [], parameters['redirect_uri'] ?? this.redirectUri)
      : answer
  }

  exchange(from: Pick<Answer, 'code' | 'verifier'>, parameters: Parameters = {}): Promise<TokenAnswer> {
    return this.token({
      grant_type: 'authorization_code',
      code: from.code,
      code_verifier: from.verifier,
      redirect_uri: this.redirectUri,
      ...parameters,
    })
  }

  refresh(token: TokenAnswer | string, parameters: Parameters = {}): Promise<TokenAnswer> {
    const refreshToken = typeof token === 'string' ? token : token.refresh
    return this.token({ grant_type: 'refresh_token', refresh_token: refreshToken, ...parameters })
  }

  /** Logs in and exchanges the code. Throws if the response contains no tokens. */
  async signIn(parameters: Parameters = {}): Promise<TokenAnswer & { readonly caller: Caller }> {
    const tokens = await this.exchange(await this.login(parameters))
    if (tokens.outcome !== '200') throw new Error(`${tokens.outcome} ${JSON.stringify(tokens.body)}`)
    return { ...tokens, caller: callerOf(tokens.access) }
  }

  async token(parameters: Parameters, headers: Readonly<Record<string, string>> = {}): Promise<TokenAnswer> {
    const response = await tokenRequest(this.rig, { client_id: this.id, ...parameters }, headers)
    const body = await jsonOf(response)
    const member = (name: string): string => (typeof body[name] === 'string' ? body[name] : '')
    const claimsOf = (token: string): JWTPayload => (token === '' ? {} : decodeJwt(token))
    return {
      outcome: response.status === 200 ? '200' : `${response.status} ${String(body['error'])}`,
      headers: response.headers,
      body,
      scope: member('scope'),
      access: member('access_token'),
      refresh: member('refresh_token'),
      claims: claimsOf(member('access_token')),
      idClaims: claimsOf(member('id_token')),
    }
  }

  /** Calls the registration management endpoint of the client. */
  manage(
    method: string,
    metadata?: object,
    token = textOf(this.registration['registration_access_token']),
  ): Promise<Response> {
    return fetch(textOf(this.registration['registration_client_uri']), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(metadata ? { body: JSON.stringify({ client_id: this.id, ...metadata }) } : {}),
    })
  }

  #answer(shown: Shown, verifier: string): Answer {
    const query = shown.status === 0 ? Object.fromEntries(shown.url.searchParams) : {}
    return { ...shown, verifier, query, code: query['code'] ?? '', error: query['error'] }
  }
}

/** The caller that the server's hosts derive from an access token. */
export function callerOf(token: string): Caller {
  const claims = decodeJwt(token)
  return makeCaller({ issuer: claims.iss ?? '', subject: claims.sub ?? '', claims, token })
}

/** An authorization server and a registered client. */
export async function startWithClient(
  t: Test,
  options: RigOptions = {},
  metadata: object = {},
): Promise<{ rig: Rig; client: TestClient }> {
  const rig = await startAuthServer(t, options)
  return { rig, client: await TestClient.register(rig, metadata) }
}
