/**
 * An upstream token that its receiver rejects before it expires: one forced refresh and one retry, for every strategy.
 */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import { makeOutgoing, type StrategyConfig } from '../../../../runtime/outgoing/index.ts'
import type { OutgoingRequest } from '../../../../runtime/outgoing/strategy.ts'
import { login, redeem, type Rig, tokensOf } from '../../../helpers/authserver/authserver.ts'
import { type PeerAnswers, startPeer } from '../../../helpers/authserver/oauth2-peer.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { testRequest } from '../../../helpers/outgoing/outgoing.ts'

interface Signed {
  readonly rig: Rig
  readonly caller: Caller
  readonly responses: PeerAnswers
  readonly refreshes: () => number
}

const tokens = (n: number, more: object = {}) => ({
  body: {
    access_token: `at-${n}`,
    refresh_token: `rt-${n}`,
    token_type: 'bearer',
    expires_in: 3600,
    ...more,
  },
})

/** A user who has signed in at the provider `hub`, whose next refresh gives `at-1`. */
async function signedIn(t: Test, first: object = {}): Promise<Signed> {
  const responses: PeerAnswers = { token: tokens(0, first) }
  const peer = await startPeer(t, responses)
  const done = await login(peer.rig, { client_id: peer.clientId })
  const token = (await tokensOf(await redeem(peer.rig, done))).access_token
  responses.token = tokens(1)
  const claims = decodeJwt(token)
  return {
    rig: peer.rig,
    caller: makeCaller({ issuer: claims.iss ?? '', subject: claims.sub ?? '', claims, token }),
    responses,
    refreshes: () =>
      peer.seen('/token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length,
  }
}

function strategyOf(t: Test, { rig }: Signed, config: StrategyConfig) {
  const outgoing = makeOutgoing({ upstream: rig.server.upstreamTokens, now: rig.now, enableObo: true })
  t.teardown(() => outgoing.close())
  return outgoing.strategy(config)
}

const inject: StrategyConfig = { type: 'upstream_inject', upstreamInject: { providerName: 'hub' } }

const sent = ({ headers }: OutgoingRequest): unknown => headers['authorization']

for (const [name, first] of [
  ['revoked early', {}],
  ['without expires_in', { expires_in: undefined }],
] as const) {
  await t.test(`upstream_inject: a token ${name} is renewed when the backend rejects it`, async (t) => {
    const self = await signedIn(t, first)
    const strategy = strategyOf(t, self, inject)
    const [one, two, three] = [testRequest(), testRequest(), testRequest()]
    await strategy.apply(one, self.caller)
    t.equal(sent(one), 'Bearer at-0')
    t.equal(strategy.refused(one), true)
    await strategy.apply(two, self.caller)
    t.equal(sent(two), 'Bearer at-1')
    t.equal(self.refreshes(), 1)
    t.equal(strategy.refused(two), false, 'it was renewed just before')
    await strategy.apply(three, self.caller)
    t.equal(sent(three), 'Bearer at-1')
    self.rig.pass(31_000)
    self.responses.token = tokens(2)
    t.equal(strategy.refused(three), true)
    await strategy.apply(three, self.caller)
    t.equal(sent(three), 'Bearer at-2')
  })
}

await t.test('upstream_inject: simultaneously rejected requests cause one renewal', async (t) => {
  const self = await signedIn(t)
  const strategy = strategyOf(t, self, inject)
  const requests = Array.from({ length: 5 }, () => testRequest())
  await Promise.all(requests.map(async (request) => strategy.apply(request, self.caller)))
  for (const request of requests) strategy.refused(request)
  await Promise.all(requests.map(async (request) => strategy.apply(request, self.caller)))
  t.same(new Set(requests.map(sent)), new Set(['Bearer at-1']))
  t.equal(self.refreshes(), 1)
})

await t.test('upstream_inject: a provider that returns the same token is requested once', async (t) => {
  const self = await signedIn(t)
  const strategy = strategyOf(t, self, inject)
  self.responses.token = tokens(0)
  const request = testRequest()
  await strategy.apply(request, self.caller)
  strategy.refused(request)
  for (let count = 0; count < 3; count++) await strategy.apply(request, self.caller)
  t.equal(self.refreshes(), 1)
})

await t.test('upstream_inject: without a refresh token the error names the page of accounts', async (t) => {
  const self = await signedIn(t, { refresh_token: undefined })
  const strategy = strategyOf(t, self, inject)
  const request = testRequest()
  await strategy.apply(request, self.caller)
  t.equal(strategy.refused(request), true)
  await t.rejects(async () => strategy.apply(request, self.caller), {
    code: 'UPSTREAM_TOKEN_MISSING',
    message: /open http:\S+\/oauth\/accounts and renew hub/,
  })
  t.equal(await self.rig.server.isLive(self.caller), true, 'a backend that rejects every token ends no login')
  self.rig.pass(31_000)
  await t.rejects(async () => strategy.apply(request, self.caller), { code: 'UPSTREAM_TOKEN_MISSING' })
})

await t.test('upstream_inject: a forced refresh that the provider rejects ends the connection', async (t) => {
  const self = await signedIn(t)
  const strategy = strategyOf(t, self, inject)
  const request = testRequest()
  await strategy.apply(request, self.caller)
  self.responses.token = { status: 400, body: { error: 'bad_refresh_token' } }
  strategy.refused(request)
  await t.rejects(async () => strategy.apply(request, self.caller), { code: 'UPSTREAM_TOKEN_MISSING' })
})

await t.test('upstream_inject: a backend cannot invalidate the token of another caller', async (t) => {
  const self = await signedIn(t)
  const upstream = self.rig.server.upstreamTokens
  await upstream.get(self.caller, 'hub')
  const other = makeCaller({ issuer: self.rig.issuer, subject: 'mallory', claims: self.caller.claims })
  upstream.refused?.(other, 'hub', 'another token')
  t.match(await upstream.get(self.caller, 'hub'), { accessToken: 'at-0' })
  t.equal(self.refreshes(), 0)
})

const exchanges: readonly (readonly [string, (url: string) => StrategyConfig])[] = [
  [
    'token_exchange',
    (url) => ({
      type: 'token_exchange',
      tokenExchange: { tokenUrl: `${url}/exchange`, audience: 'b', subjectProviderName: 'hub' },
    }),
  ],
  [
    'obo',
    (url) => ({
      type: 'obo',
      obo: {
        tokenUrl: `${url}/exchange`,
        clientId: 'c',
        clientSecret: 's',
        audience: 'api://b',
        subjectTokenProviderName: 'hub',
      },
    }),
  ],
]

for (const [type, config] of exchanges) {
  await t.test(`${type}: a subject token that the token endpoint rejects is renewed once`, async (t) => {
    const self = await signedIn(t)
    const endpoint = await startLoopback(({ form }) => {
      const subject = form.get('subject_token') ?? form.get('assertion')
      return subject === 'at-1'
        ? { body: { access_token: 'exchanged', token_type: 'Bearer', expires_in: 60 } }
        : { status: 400, body: { error: 'invalid_grant' } }
    })
    t.teardown(() => endpoint.close())
    const strategy = strategyOf(t, self, config(endpoint.url))
    const request = testRequest()
    await strategy.apply(request, self.caller)
    t.equal(sent(request), 'Bearer exchanged')
    t.equal(self.refreshes(), 1)
    t.equal(endpoint.seen.length, 2)
  })

  await t.test(`${type}: an endpoint that rejects every subject token gets two requests`, async (t) => {
    const self = await signedIn(t)
    const endpoint = await startLoopback(() => ({ status: 400, body: { error: 'invalid_grant' } }))
    t.teardown(() => endpoint.close())
    const strategy = strategyOf(t, self, config(endpoint.url))
    await t.rejects(async () => strategy.apply(testRequest(), self.caller), { code: 'SUBJECT_REFUSED' })
    t.equal(endpoint.seen.length, 2)
    await t.rejects(async () => strategy.apply(testRequest(), self.caller), { code: 'SUBJECT_REFUSED' })
    t.equal(endpoint.seen.length, 3, 'and causes no repeated refreshes')
    t.equal(self.refreshes(), 1)
  })
}
