/** A plain OAuth 2.0 server with configurable responses, and an embedded authorization server that delegates to it. */
import { decodeJwt } from 'jose'
import type { Test } from 'tap'
import type { OAuth2UpstreamSettings } from '../../../runtime/config/index.ts'
import { login, redeem, registerClient, type Rig, startAuthServer, tokensOf } from './authserver.ts'
import { type PeerResponse, type Loopback, type SeenRequest, startLoopback } from '../loopback.ts'

type Scope = Pick<Test, 'teardown'>

export interface Peer {
  readonly rig: Rig
  readonly peer: Loopback
  readonly clientId: string
  readonly seen: (path: string) => readonly SeenRequest[]
}

export interface PeerAnswers {
  token?: PeerResponse
  userinfo?: PeerResponse
  registration?: PeerResponse
}

export const bearer = {
  access_token: 'upstream-at',
  token_type: 'bearer',
  expires_in: 3600,
  refresh_token: 'upstream-rt',
}

/** A plain OAuth provider that is an upstream of an authorization server. */
export interface Hub extends Loopback {
  /** Returns the provider's settings as the upstream `name`. */
  upstream(issuer: string, more?: Partial<OAuth2UpstreamSettings>): OAuth2UpstreamSettings
  /** The number of requests for a path. */
  count(path: string): number
}

export interface HubOptions {
  readonly name?: string
  /** Answers token requests. Default: an access token `<name>-at` for an hour, without a refresh token. */
  readonly token?: (request: SeenRequest) => PeerResponse | Promise<PeerResponse>
  /** Answers userinfo requests at `/me`. Default: a redirect, as for every other path. */
  readonly me?: () => PeerResponse
  /** Parameters of the redirect back from the provider. Default: a code. */
  readonly back?: () => Readonly<Record<string, string>>
}

export async function startHub(t: Scope, { name = 'hub', token, me, back }: HubOptions = {}): Promise<Hub> {
  const peer = await startLoopback((request): PeerResponse | Promise<PeerResponse> => {
    const { path, query } = request
    if (path === '/token') {
      const body = { access_token: `${name}-at`, token_type: 'bearer', expires_in: 3600 }
      return token?.(request) ?? { body }
    }
    if (path === '/me' && me) return me()
    const parameters = new URLSearchParams({
      state: query.get('state') ?? '',
      ...(back?.() ?? { code: 'c' }),
    })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${parameters.toString()}` } }
  })
  t.teardown(() => peer.close())
  return {
    ...peer,
    upstream: (issuer, more) => ({
      name,
      type: 'oauth2',
      redirectUri: `${issuer}/oauth/callback`,
      scopes: [],
      additionalAuthorizationParams: {},
      authorizationEndpoint: `${peer.url}/authorize`,
      tokenEndpoint: `${peer.url}/token`,
      clientId: 'our-id',
      ...more,
    }),
    count: (path) => peer.seen.filter((request) => request.path === path).length,
  }
}

/**
 * Starts a plain OAuth server with configurable responses, and an embedded authorization server that delegates to it.
 */
export async function startPeer(
  t: Test,
  responses: PeerAnswers,
  config: (url: string) => Partial<OAuth2UpstreamSettings> = () => ({}),
): Promise<Peer> {
  const peer: Loopback = await startLoopback(({ path, query }): PeerResponse => {
    if (path === '/authorize') {
      const back = new URLSearchParams({ code: 'upstream-code', state: query.get('state') ?? '' })
      return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
    }
    if (path === '/token') return responses.token ?? { body: bearer }
    if (path === '/me') return responses.userinfo ?? { status: 404 }
    if (path === '/register') return responses.registration ?? { status: 404 }
    return { status: 404 }
  })
  t.teardown(() => peer.close())
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer }) => [upstream(issuer, peer.url, config(peer.url))],
  })
  return {
    rig,
    peer,
    clientId: await registerClient(rig),
    seen: (path) => peer.seen.filter((one) => one.path === path),
  }
}

export function upstream(
  issuer: string,
  url: string,
  more: Partial<OAuth2UpstreamSettings>,
): OAuth2UpstreamSettings {
  return {
    name: 'hub',
    type: 'oauth2',
    redirectUri: `${issuer}/oauth/callback`,
    scopes: ['repo'],
    additionalAuthorizationParams: {},
    authorizationEndpoint: `${url}/authorize?tenant=1`,
    tokenEndpoint: `${url}/token`,
    ...(more.dcr === undefined ? { clientId: 'our-id', clientSecret: () => 'our-secret' } : {}),
    ...more,
  }
}

/** Runs a complete login. Returns the ID token's claims, or the error that the client received. */
export async function outcome({ rig, clientId }: Peer): Promise<Record<string, unknown>> {
  const done = await login(rig, { client_id: clientId })
  const error = done.response.searchParams.get('error')
  if (error !== null) return { error }
  const { id_token: idToken, access_token: accessToken } = await tokensOf(await redeem(rig, done))
  return { ...Object.fromEntries(Object.entries(decodeJwt(idToken))), tsid: decodeJwt(accessToken)['tsid'] }
}
