/**
 * Sessions: one per user and client even when logins end at the same time, listed while they live, and invalid as soon
 * as they are ended.
 */
import t from 'tap'
import { makeState } from '../../../runtime/authserver/storage/state.ts'
import type { UpstreamTokensRecord } from '../../../runtime/authserver/model/records.ts'
import type { SessionClaims } from '../../../runtime/authserver/tokens/session-claims.ts'
import { Sessions } from '../../../runtime/authserver/tokens/sessions.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { sha256, upstreamRowKey } from '../../../runtime/authserver/model/identifiers.ts'

const day = 86_400_000
const client = 'https://notes.example/client.json'
const alice = { userId: 'alice', authTimeSec: 0 }

function setup() {
  let nowMs = Date.UTC(2026, 0, 1)
  const now = (): number => nowMs
  const secret = new Uint8Array(32).fill(7)
  let secrets = [secret]
  const store: Store = makeMemoryStore({ now })
  const state = makeState(store, () => secrets)
  const sessions = new Sessions({ state, now })
  const tokens = (provider: string): UpstreamTokensRecord => ({
    provider,
    subject: 's',
    accessToken: 'at',
    refreshToken: 'rt',
    obtainedAtMs: nowMs,
  })
  return {
    state,
    sessions,
    now,
    tokens,
    pass: (ms: number) => void (nowMs += ms),
    dropSecrets: () => void (secrets = [new Uint8Array(32).fill(8)]),
  }
}

type Setup = ReturnType<typeof setup>

async function open(self: Setup, provider = 'corp') {
  const opened = await self.sessions.open({
    user: alice,
    clientId: client,
    obtained: [self.tokens(provider)],
    endsAtMs: self.now() + 30 * day,
  })
  const claims: SessionClaims = {
    tsid: opened.sessionId,
    gid: sha256(opened.grantId),
    sub: alice.userId,
    client_id: client,
  }
  return { ...opened, claims }
}

t.test('sessions: simultaneous logins share one session, and ending it ends everything in it', async (t) => {
  const self = setup()
  const opened = await Promise.all(Array.from({ length: 6 }, (_, index) => open(self, `p${index}`)))
  t.equal(new Set(opened.map(({ sessionId }) => sessionId)).size, 1)
  const [listed, ...more] = await self.sessions.of(alice.userId)
  t.same(more, [])
  t.equal(listed?.grants.length, 6)
  for (let index = 0; index < 6; index++) {
    t.ok(await self.state.rows.get(upstreamRowKey(listed?.id ?? '', `p${index}`)))
  }
  await self.sessions.endSession(listed?.id ?? '')
  for (const { claims } of opened) t.equal(await self.sessions.isLive(claims), false)
})

t.test('sessions: simultaneous logins replace a lost session with one new session', async (t) => {
  const self = setup()
  const first = await open(self)
  await self.state.sessions.delete(first.sessionId)
  const opened = await Promise.all(Array.from({ length: 4 }, () => open(self)))
  t.equal(new Set(opened.map(({ sessionId }) => sessionId)).size, 1)
  t.not(opened[0]?.sessionId, first.sessionId)
})

t.test('sessions: unreadable records of a dropped secret do not prevent a new session', async (t) => {
  const self = setup()
  await open(self)
  self.dropSecrets()
  const { claims } = await open(self)
  t.equal(await self.sessions.isLive(claims), true)
  t.equal((await self.sessions.of(alice.userId)).length, 1)
})

t.test('sessions: abandoned logins do not end established grants', async (t) => {
  const self = setup()
  const redeemed = async () => {
    const opened = await open(self)
    t.ok(await self.sessions.prolong(opened.sessionId, opened.grantId, self.now() + 30 * day))
    return opened
  }
  const established = await redeemed()
  const abandoned = []
  for (let count = 0; count < 40; count++) abandoned.push(await open(self))
  t.equal(await self.sessions.isLive(established.claims), true)
  const live = await Promise.all(abandoned.map(({ claims }) => self.sessions.isLive(claims)))
  t.same(live, [...Array.from({ length: 20 }, () => false), ...Array.from({ length: 20 }, () => true)])

  const twenty = [established]
  while (twenty.length < 20) twenty.push(await redeemed())
  for (let count = 0; count < 40; count++) await open(self)
  for (const { claims } of twenty) t.equal(await self.sessions.isLive(claims), true)

  t.comment('one more that is redeemed ends the oldest, and its refresh tokens')
  const another = await redeemed()
  t.equal(await self.sessions.isLive(established.claims), false)
  t.equal(await self.sessions.isLive(another.claims), true)
  const [session] = await self.sessions.of(alice.userId)
  t.equal(session?.grants.filter(({ redeemed }) => redeemed).length, 20)
  t.ok((session?.grants.length ?? 0) <= 40, 'the record is bounded')
})

t.test('sessions: stored grants without a redemption flag are treated as redeemed', async (t) => {
  const self = setup()
  const old = await open(self)
  const seen = await self.state.sessions.read(old.sessionId)
  if (!seen) throw new Error('the session is stored')
  const grants = seen.value.grants.map(({ id, endsAtMs }) => ({ id, endsAtMs }))
  t.ok(await self.state.sessions.swap(old.sessionId, seen, { ...seen.value, grants }, day))
  for (let count = 0; count < 40; count++) await open(self)
  t.equal(await self.sessions.isLive(old.claims), true)
})

t.test('sessions: a client that keeps signing in stays on the list', async (t) => {
  const self = setup()
  const first = await open(self)
  self.pass(20 * day)
  const second = await open(self)
  t.equal(second.sessionId, first.sessionId)
  self.pass(16 * day)
  t.equal(await self.sessions.isLive(second.claims), true)
  t.same(
    (await self.sessions.of(alice.userId)).map(({ id }) => id),
    [second.sessionId],
  )
})

for (const end of ['endSession', 'endGrant'] as const) {
  const ended = (self: Setup, sessionId: string, grantId: string): Promise<unknown> =>
    end === 'endGrant' ? self.sessions.endGrant(sessionId, grantId) : self.sessions.endSession(sessionId)

  t.test(`sessions: ${end}: a liveness check during the operation is not cached`, async (t) => {
    const self = setup()
    const { sessionId, grantId, claims } = await open(self)
    const { swap, delete: remove } = self.state.sessions
    const ask = async (): Promise<void> => void (await self.sessions.isLive(claims))
    Object.assign(self.state.sessions, {
      swap: async (...args: Parameters<typeof swap>) => (await ask(), swap(...args)),
      delete: async (...args: Parameters<typeof remove>) => (await ask(), remove(...args)),
    })
    await ended(self, sessionId, grantId)
    t.equal(await self.sessions.isLive(claims), false)
  })

  t.test(`sessions: ${end}: a liveness check that returns late is not cached`, async (t) => {
    const self = setup()
    const { sessionId, grantId, claims } = await open(self)
    const { get } = self.state.sessions
    const { promise: read, resolve: hasRead } = Promise.withResolvers<void>()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    Object.assign(self.state.sessions, {
      async get(id: string) {
        const found = await get(id)
        hasRead()
        await released
        return found
      },
    })
    const late = self.sessions.isLive(claims)
    await read
    Object.assign(self.state.sessions, { get })
    await ended(self, sessionId, grantId)
    release()
    await late
    t.equal(await self.sessions.isLive(claims), false)
  })
}

t.test('sessions: a connection made while its session ends or is disconnected is not kept', async (t) => {
  for (const end of ['end', 'disconnect'] as const) {
    const self = setup()
    const { sessionId } = await open(self)
    const { rows } = self.state
    const put = rows.put.bind(rows)
    Object.assign(rows, {
      async put(...args: Parameters<typeof put>) {
        await (end === 'end'
          ? self.sessions.endSession(sessionId)
          : self.sessions.disconnect(sessionId, 'hub'))
        return put(...args)
      },
    })
    t.equal(await self.sessions.connect(sessionId, alice.userId, self.tokens('hub')), false)
    t.equal(await rows.get(upstreamRowKey(sessionId, 'hub')), undefined, end)
  }
})

t.test('sessions: tokens of withheld providers are deleted, also after a failure', async (t) => {
  const self = setup()
  const { sessionId } = await open(self, 'hub')
  const next = (): Promise<unknown> =>
    self.sessions.open({
      user: alice,
      clientId: client,
      obtained: [],
      offered: ['corp'],
      withheld: ['hub'],
      endsAtMs: self.now() + day,
    })
  const { rows } = self.state
  const remove = rows.delete.bind(rows)
  Object.assign(rows, { delete: () => Promise.reject(new Error('the store is down')) })
  await t.rejects(next(), /the store is down/)
  Object.assign(rows, { delete: remove })
  t.same((await self.sessions.get(sessionId))?.providers, [])
  await next()
  t.equal(await rows.get(upstreamRowKey(sessionId, 'hub')), undefined)
})

t.test('sessions: tokens that another login adds at the same time are deleted', async (t) => {
  const self = setup()
  const { sessionId } = await open(self)
  const { sessions } = self.state
  const swap = sessions.swap.bind(sessions)
  Object.assign(sessions, {
    async swap(...args: Parameters<typeof swap>) {
      Object.assign(sessions, { swap })
      await open(self, 'hub')
      return swap(...args)
    },
  })
  await self.sessions.open({
    user: alice,
    clientId: client,
    obtained: [],
    offered: ['corp'],
    withheld: ['hub'],
    endsAtMs: self.now() + day,
  })
  t.same((await self.sessions.get(sessionId))?.providers, ['corp'])
  t.equal(await self.state.rows.get(upstreamRowKey(sessionId, 'hub')), undefined)
})
