/** Upstream tokens at request time: owner, renewal, and the effect of failures. */
import t, { type Test } from 'tap'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import type { Rig } from '../../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { startWithClient, type TestClient } from '../../../helpers/authserver/test-client.ts'
import type { PeerResponse } from '../../../helpers/loopback.ts'

interface Self {
  readonly rig: Rig
  readonly hub: Hub
  readonly client: TestClient
  readonly caller: Caller
  /** The access token that the request carries. */
  readonly get: (as?: Caller) => Promise<string | undefined>
  readonly refreshes: () => number
  response: (n: number) => PeerResponse | Promise<PeerResponse>
}

const responseOf = (n: number, more: object = {}): PeerResponse => ({
  body: {
    access_token: `at-${n}`,
    refresh_token: `rt-${n}`,
    token_type: 'Bearer',
    expires_in: 3600,
    ...more,
  },
})

async function setup(t: Test, first: object = {}): Promise<Self> {
  let calls = 0
  const hub = await startHub(t, {
    token: ({ form }) =>
      form.get('grant_type') === 'refresh_token' ? self.response(++calls) : responseOf(0, first),
  })
  const { rig, client } = await startWithClient(t, { upstreams: ({ issuer }) => [hub.upstream(issuer)] })
  const { caller } = await client.signIn()
  const get = async (as = caller): Promise<string | undefined> =>
    (await rig.server.upstreamTokens.get(as))?.accessToken
  const self: Self = {
    rig,
    hub,
    client,
    caller,
    get,
    refreshes: () => calls,
    response: (n) => responseOf(n),
  }
  return self
}

const minute = 60_000

t.test('upstream tokens: a fresh token is used, and renewed a minute before it expires', async (t) => {
  const { rig, get, refreshes } = await setup(t)
  t.equal(await get(), 'at-0')
  rig.pass(58 * minute)
  t.equal(await get(), 'at-0')
  t.equal(refreshes(), 0)
  rig.pass(1.5 * minute)
  t.equal(await get(), 'at-1')
  t.equal(await get(), 'at-1')
  t.equal(refreshes(), 1)
})

t.test(
  'upstream tokens: a short-lived token is used for at least half of its life, and one without expiry is never renewed',
  async (t) => {
    const short = await setup(t, { expires_in: 40 })
    t.equal(await short.get(), 'at-0')
    t.equal(short.refreshes(), 0)
    short.rig.pass(21_000)
    t.equal(await short.get(), 'at-1')
    const endless = await setup(t, { expires_in: undefined })
    endless.rig.pass(20 * 24 * 60 * minute)
    t.equal(await endless.get(), 'at-0')
  },
)

t.test('upstream tokens: simultaneous requests on all replicas cause one refresh', async (t) => {
  const self = await setup(t)
  const second = await self.rig.replica()
  const used = new Set<string>()
  self.response = async (n) => {
    const sent = self.hub.seen.at(-1)?.form.get('refresh_token') ?? ''
    // A provider that rotates refresh tokens. A second use of one would end the connection.
    if (used.has(sent)) return { status: 400, body: { error: 'invalid_grant' } }
    used.add(sent)
    return responseOf(n)
  }
  self.rig.pass(61 * minute)
  second.pass(61 * minute)
  const askers = [self.rig, second, self.rig, second, self.rig, second]
  const responses = await Promise.all(askers.map((rig) => rig.server.upstreamTokens.get(self.caller)))
  t.same(new Set(responses.map((token) => token?.accessToken)), new Set(['at-1']))
  t.equal(self.refreshes(), 1)
})

t.test('upstream tokens: a response without a new refresh token keeps the old one', async (t) => {
  const self = await setup(t)
  self.response = (n) => responseOf(n, { refresh_token: undefined })
  for (const expected of ['at-1', 'at-2']) {
    self.rig.pass(61 * minute)
    t.equal(await self.get(), expected)
    t.equal(self.hub.seen.at(-1)?.form.get('refresh_token'), 'rt-0')
  }
})

t.test(
  'upstream tokens: after a rejected refresh the row is deleted and the user must sign in again',
  async (t) => {
    for (const error of ['invalid_grant', 'bad_refresh_token']) {
      const self = await setup(t)
      self.response = () => ({ status: 400, body: { error, error_description: 'SECRET' } })
      self.rig.pass(61 * minute)
      await t.rejects(self.get(), {
        code: 'UPSTREAM_TOKEN_MISSING',
        status: 401,
        message: 'the sign-in session with hub has ended: ask the user to sign in again from this client',
      })
      t.equal(await self.get(), undefined)
      t.equal(self.refreshes(), 1, 'not tried again')
      t.ok(self.rig.events.some((event) => event.type === 'upstream_refused' && event.upstream === 'hub'))
      t.match((await self.client.login()).code, /^gh_ac_/)
    }
  },
)

t.test(
  'upstream tokens: an unresponsive provider has no effect until the token expires, then causes 503, and the row stays',
  async (t) => {
    const self = await setup(t)
    self.response = () => ({ status: 503 })
    self.rig.pass(59.5 * minute)
    t.equal(await self.get(), 'at-0')
    t.equal(await self.get(), 'at-0')
    t.equal(self.refreshes(), 1, 'a pause between two tries')
    self.rig.pass(minute)
    await t.rejects(self.get(), {
      code: 'AUTH_UNAVAILABLE',
      status: 503,
      headers: { 'retry-after': '5' },
    })
    self.response = () => ({ status: 401, body: { error: 'invalid_client' } })
    await t.rejects(
      self.get(),
      { code: 'AUTH_UNAVAILABLE' },
      'an error of the server does not require a new sign-in',
    )
    self.rig.pass(11_000)
    self.response = () => 'cut'
    await t.rejects(self.get(), { code: 'AUTH_UNAVAILABLE' })
    self.response = (n) => responseOf(n)
    t.match(await self.get(), /^at-\d$/)
  },
)

t.test('upstream tokens: without a refresh token the connection ends when the token expires', async (t) => {
  const self = await setup(t, { refresh_token: undefined })
  self.rig.pass(59.5 * minute)
  t.equal(await self.get(), 'at-0')
  self.rig.pass(minute)
  await t.rejects(self.get(), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.equal(self.refreshes(), 0)
})

t.test('upstream tokens: another user or client never gets the tokens', async (t) => {
  const { rig, caller, get } = await setup(t)
  t.ok(await get())
  for (const [subject, claims] of [
    ['another-user', {}],
    [caller.subject, { client_id: 'another-client' }],
    [caller.subject, { client_id: undefined }],
    [caller.subject, { tsid: 'guess' }],
    [caller.subject, { tsid: undefined }],
    [caller.subject, { tsid: ['a'] }],
  ] as const) {
    const other = makeCaller({ issuer: rig.issuer, subject, claims: { ...caller.claims, ...claims } })
    t.equal(await get(other), undefined, JSON.stringify(claims))
  }
})

t.test('upstream tokens: an aborted request does not affect the other requests', async (t) => {
  const self = await setup(t)
  let release: () => void = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const asked = new Promise<void>((resolve) => {
    self.response = async (n) => {
      resolve()
      await held
      return responseOf(n)
    }
  })
  self.rig.pass(61 * minute)
  const giving = new AbortController()
  const first = self.rig.server.upstreamTokens.get(self.caller, 'hub', giving.signal)
  const second = self.get()
  await asked
  giving.abort(new Error('gone'))
  await t.rejects(first, { message: 'gone' })
  release()
  t.equal(await second, 'at-1')
})

t.test('upstream tokens: ending a session as administrator deletes its tokens', async (t) => {
  const { rig, caller, get } = await setup(t)
  t.equal(await rig.server.endSession(String(caller.claims['tsid'])), true)
  t.equal(await rig.server.endSession(String(caller.claims['tsid'])), false)
  t.equal(await get(), undefined)
  t.equal(await rig.server.isLive(caller), false)
})
