/** Records of the authorization server: clients, sessions, refresh families, consents, upstream tokens, pending steps. */
import { generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet } from 'jose'
import type { Test } from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  refresh,
  refusal,
  type Rig,
  startAuthServer,
  textOf,
  tokenRequest,
  tokensOf,
} from '../authserver/authserver.ts'
import { Browser, type Shown } from '../authserver/cookie-browser.ts'
import { upstream } from '../authserver/oauth2-peer.ts'
import { type Loopback, startLoopback } from '../loopback.ts'
import { dumpStore, type Recorded, recordedSecret, type StoredPart } from './part.ts'

/** Redirect URI of the client whose consent is remembered. */
const web = 'https://app.example.com/cb'
const scope = 'openid offline_access'
const minuteMs = 60_000

interface Server {
  readonly rig: Rig
  readonly hub: Loopback
}

interface ServerOptions {
  readonly store: Store
  readonly signingKey: string
  /** Issuer of the recorded server. Default: the address of this one. */
  readonly issuer?: string
}

async function start(t: Test, { store, signingKey, issuer: recorded }: ServerOptions): Promise<Server> {
  const hub = await startLoopback(({ path, query, form }) => {
    if (path === '/authorize') {
      const back = new URLSearchParams({ code: 'upstream-code', state: query.get('state') ?? '' })
      return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
    }
    if (path === '/me') return { body: { sub: 'ada', name: 'Ada' } }
    const token = form.get('refresh_token') ?? 'first'
    return {
      body: {
        access_token: `access after ${token}`,
        refresh_token: `refresh after ${token}`,
        token_type: 'Bearer',
        expires_in: 3600,
      },
    }
  })
  t.teardown(() => hub.close())
  const rig = await startAuthServer(t, {
    store,
    upstreams: ({ issuer }) => [
      upstream(issuer, hub.url, {
        userInfo: {
          endpointUrl: `${hub.url}/me`,
          httpMethod: 'GET',
          additionalHeaders: {},
          subjectFields: ['sub'],
          nameFields: ['name'],
          emailFields: [],
        },
      }),
    ],
    config: (own) => ({
      issuer: recorded ?? own,
      allowedAudiences: [`${recorded ?? own}/mcp`],
      registration: { enabled: true, confidentialClients: true },
      secrets: () => ({ signingKeys: [signingKey], hmacSecrets: [Buffer.from(recordedSecret)] }),
    }),
  })
  return { rig, hub }
}

async function register(rig: Rig, metadata: object): Promise<Record<string, string>> {
  const response = await fetch(`${rig.issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Recorded',
      redirect_uris: [web],
      scope: `${scope} email`,
      ...metadata,
    }),
  })
  return (await jsonOf(response)) as Record<string, string>
}

async function record(t: Test): Promise<unknown> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const store = makeMemoryStore()
  const { rig } = await start(t, { store, signingKey })
  const atMs = Date.now()
  const { client_id: clientId = '' } = await register(rig, {})
  const asked = { client_id: clientId, redirect_uri: web, scope }
  const done = await login(rig, asked)
  const first = await tokensOf(await redeem(rig, done, { redirect_uri: web }))
  const second = await tokensOf(await refresh(rig, clientId, first.refresh_token))
  const confidential = await register(rig, { token_endpoint_auth_method: 'client_secret_post' })
  const pending = await login(rig, { ...asked, client_id: confidential['client_id'] ?? '' })
  const { verifier, challenge } = pkce()
  const browser = new Browser()
  const page = await browser.open(authorizeUrl(rig, { ...asked, code_challenge: challenge, state: 's' }))
  return {
    atMs,
    signingKey,
    issuer: rig.issuer,
    clientId,
    accessToken: second.access_token,
    spentRefreshToken: first.refresh_token,
    refreshToken: second.refresh_token,
    cookies: [...done.browser.cookies(rig.issuer)],
    confidential: { ...confidential, code: pending.code, verifier: pending.verifier },
    consentPage: {
      url: page.url.href,
      text: page.text,
      cookies: [...browser.cookies(rig.issuer)],
      verifier,
    },
    records: await dumpStore(store),
  }
}

/** Starts a server of the current code at the time of the recording. */
async function resume(t: Test, recorded: Recorded): Promise<Server> {
  const store = makeMemoryStore()
  for (const [key, value] of Object.entries<string>(recorded['records'])) await store.set(key, value)
  const server = await start(t, {
    store,
    signingKey: recorded['signingKey'],
    issuer: recorded['issuer'],
  })
  server.rig.pass(recorded['atMs'] + 1_000 - Date.now())
  return server
}

function browserWith(rig: Rig, cookies: readonly (readonly [string, string])[]): Browser {
  const browser = new Browser()
  for (const [name, value] of cookies) browser.setCookie(rig.issuer, name, value)
  return browser
}

async function check(t: Test, recorded: Recorded): Promise<void> {
  const { clientId, issuer, accessToken, refreshToken, spentRefreshToken } = recorded as Record<
    string,
    string
  >
  const claims = decodeJwt(accessToken ?? '')
  const caller = makeCaller({ issuer: issuer ?? '', subject: claims.sub ?? '', claims })

  await t.test('an access token is valid, and its session is live', async (t) => {
    const { rig } = await resume(t, recorded)
    const keys = (await (await fetch(`${rig.issuer}/.well-known/jwks.json`)).json()) as JSONWebKeySet
    const { payload } = await jwtVerify(accessToken ?? '', createLocalJWKSet(keys), {
      issuer: issuer ?? '',
      audience: `${issuer}/mcp`,
      currentDate: new Date(rig.now()),
    })
    t.equal(payload['client_id'], clientId)
    t.equal(await rig.server.isLive(caller), true)
  })

  await t.test('a refresh token works, and so does its successor', async (t) => {
    const { rig } = await resume(t, recorded)
    const next = await tokensOf(await refresh(rig, clientId ?? '', refreshToken ?? ''))
    t.equal(decodeJwt(next.access_token).sub, claims.sub)
    t.ok((await tokensOf(await refresh(rig, clientId ?? '', next.refresh_token))).access_token)
  })

  await t.test('reuse of a spent refresh token revokes the family', async (t) => {
    const { rig } = await resume(t, recorded)
    rig.pass(2 * minuteMs)
    t.equal(await refusal(await refresh(rig, clientId ?? '', spentRefreshToken ?? '')), '400 invalid_grant')
    t.equal(await refusal(await refresh(rig, clientId ?? '', refreshToken ?? '')), '400 invalid_grant')
    t.match(rig.events, [{ type: 'refresh_reused' }])
  })

  await t.test('a stored upstream token is used, and refreshed with its refresh token', async (t) => {
    const { rig } = await resume(t, recorded)
    t.match(await rig.server.upstreamTokens.get(caller), { accessToken: 'access after first' })
    rig.pass(61 * minuteMs)
    t.match(await rig.server.upstreamTokens.get(caller), { accessToken: 'access after refresh after first' })
  })

  await t.test('remembered consent skips the page', async (t) => {
    const { rig } = await resume(t, recorded)
    const { challenge } = pkce()
    const asked = { client_id: clientId, redirect_uri: web, scope, code_challenge: challenge, state: 's' }
    const shown = await browserWith(rig, recorded['cookies']).open(authorizeUrl(rig, asked), web)
    t.match(shown.url.searchParams.get('code'), /^gh_ac_/)
    const more = { ...asked, scope: `${scope} email` }
    t.equal((await browserWith(rig, recorded['cookies']).open(authorizeUrl(rig, more), web)).status, 200)
  })

  await t.test('a confidential client redeems its code once', async (t) => {
    const { rig } = await resume(t, recorded)
    const own = recorded['confidential'] as Record<string, string>
    const request = (secret: string | undefined) =>
      tokenRequest(rig, {
        grant_type: 'authorization_code',
        code: own['code'],
        code_verifier: own['verifier'],
        client_id: own['client_id'],
        client_secret: secret,
        redirect_uri: web,
      })
    t.equal(await refusal(await request('another secret')), '401 invalid_client')
    t.ok((await tokensOf(await request(own['client_secret']))).refresh_token)
    t.equal(await refusal(await request(own['client_secret'])), '400 invalid_grant')
  })

  await t.test('a consent page from before the upgrade accepts a response', async (t) => {
    const { rig } = await resume(t, recorded)
    const { url, text, cookies, verifier } = recorded['consentPage']
    const moved = (value: string): string => value.replaceAll(issuer ?? '', rig.issuer)
    const page: Shown = { url: new URL(moved(url)), status: 200, headers: new Headers(), text: moved(text) }
    const back = await browserWith(rig, cookies).press(page, 'approve', web)
    const code = textOf(back.url.searchParams.get('code'))
    const from = { clientId: clientId ?? '', code, verifier, browser: new Browser(), response: back.url }
    t.ok((await tokensOf(await redeem(rig, from, { redirect_uri: web }))).access_token)
  })
}

export const authServerPart: StoredPart = { name: 'authserver', record, check }
