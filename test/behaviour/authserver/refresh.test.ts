/** Refresh tokens: rotation, grace period, reuse, narrowing, expiry. */
import { decodeJwt } from 'jose'
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import {
  listenFor,
  login,
  redeem,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.tokenLifespans.refreshTokenLifespan')

function callerOf(token: string): Caller {
  const claims = decodeJwt(token)
  return makeCaller({ issuer: claims.iss ?? '', subject: claims.sub ?? '', claims, token })
}

interface FaultyStore {
  readonly store: Store
  /** Writes take effect, but their replies are lost. */
  loseReplies: boolean
  /** Writes are confirmed but lost, as after a failover to a replica that had not received them. */
  dropWrites: boolean
}

/** Both faults affect compare-and-set, which writes refresh families. */
function faultyStore(inner: Store): FaultyStore {
  const faults = { loseReplies: false, dropWrites: false }
  const wrap = (store: Store): Store => ({
    ...store,
    async swap(...args) {
      if (faults.dropWrites) return true
      const swapped = await store.swap(...args)
      if (faults.loseReplies) throw new GatehouseError('STORE_DOWN')
      return swapped
    },
    namespace: (prefix) => wrap(store.namespace(prefix)),
  })
  return Object.assign(faults, { store: wrap(inner) })
}

async function start(rig: Rig, parameters = {}) {
  const done = await login(rig, parameters)
  return { clientId: done.clientId, tokens: await tokensOf(await redeem(rig, done)) }
}

t.test('refresh: every replica returns an unused successor again for a minute', async (t) => {
  const rig = await startAuthServer(t)
  const replica = await rig.replica()
  const { clientId, tokens } = await start(rig)
  const other = await listenFor(t, replica)
  const retry = async (server: Pick<Rig, 'issuer'>): Promise<string> =>
    (await tokensOf(await refresh(server, clientId, tokens.refresh_token))).refresh_token
  const successors = new Set(await Promise.all(Array.from({ length: 5 }, () => retry(rig))))
  t.equal(successors.size, 1, 'parallel requests')
  for (const waitMs of [12_000, 18_000, 29_000]) {
    for (const server of [rig, replica]) server.pass(waitMs)
    const retries = await Promise.all([retry(rig), retry(other)])
    t.same(new Set(retries), successors, 'two simultaneous retries, one at each replica')
  }
  const [successor = ''] = successors
  t.equal((await refresh(other, clientId, successor)).status, 200)
})

t.test('refresh: the first use of the successor ends the grace period', async (t) => {
  const rig = await startAuthServer(t)
  const { clientId, tokens } = await start(rig)
  const second = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  rig.pass(12_000)
  const third = await tokensOf(await refresh(rig, clientId, second.refresh_token))
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
  t.equal(await refusal(await refresh(rig, clientId, third.refresh_token)), '400 invalid_grant')
  t.ok(rig.events.some((event) => event.type === 'refresh_reused'))
})

t.test('refresh: a retry succeeds when the reply to the rotation was lost', async (t) => {
  const faulty = faultyStore(makeMemoryStore())
  const rig = await startAuthServer(t, { store: faulty.store })
  const { clientId, tokens } = await start(rig)
  faulty.loseReplies = true
  const lost = await refresh(rig, clientId, tokens.refresh_token)
  t.equal(lost.status, 503)
  t.ok(lost.headers.get('retry-after'))
  faulty.loseReplies = false
  rig.pass(12_000)
  const second = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  t.ok((await tokensOf(await refresh(rig, clientId, second.refresh_token))).refresh_token)
  t.notOk(rig.events.some((event) => event.type === 'refresh_reused'))
})

t.test('refresh: a retry succeeds when the store lost a confirmed rotation', async (t) => {
  const faulty = faultyStore(makeMemoryStore())
  const rig = await startAuthServer(t, { store: faulty.store })
  const { clientId, tokens } = await start(rig)
  faulty.dropWrites = true
  const second = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  faulty.dropWrites = false
  const third = await tokensOf(await refresh(rig, clientId, second.refresh_token))
  t.equal((await refresh(rig, clientId, third.refresh_token)).status, 200)
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
  t.equal(await refusal(await refresh(rig, clientId, third.refresh_token)), '400 invalid_grant')
})

t.test('refresh: the grace period is configurable', async (t) => {
  const long = await startAuthServer(t, { config: { refreshGraceMs: 300_000 } })
  const inTime = await start(long)
  await refresh(long, inTime.clientId, inTime.tokens.refresh_token)
  long.pass(299_000)
  t.equal((await refresh(long, inTime.clientId, inTime.tokens.refresh_token)).status, 200)

  const none = await startAuthServer(t, { config: { refreshGraceMs: 0 } })
  const late = await start(none)
  const second = await tokensOf(await refresh(none, late.clientId, late.tokens.refresh_token))
  none.pass(1)
  t.equal(await refusal(await refresh(none, late.clientId, late.tokens.refresh_token)), '400 invalid_grant')
  t.equal(await refusal(await refresh(none, late.clientId, second.refresh_token)), '400 invalid_grant')
})

t.test('refresh: later reuse revokes the family, its access tokens and its upstream tokens', async (t) => {
  const rig = await startAuthServer(t)
  const { clientId, tokens } = await start(rig)
  const second = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  const caller = callerOf(second.access_token)
  t.equal(await rig.server.isLive(caller), true)
  t.ok((await rig.server.upstreamTokens.get(caller))?.accessToken)
  rig.pass(61_000)
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
  t.equal(
    await refusal(await refresh(rig, clientId, second.refresh_token)),
    '400 invalid_grant',
    'the successor is revoked, too',
  )
  t.equal(await rig.server.isLive(caller), false)
  t.equal(await rig.server.upstreamTokens.get(caller), undefined)
  t.ok(rig.events.some((event) => event.type === 'refresh_reused' && event.outcome === 'denied'))
})

t.test('refresh: a token two generations old is reuse even within the grace period', async (t) => {
  const rig = await startAuthServer(t)
  const { clientId, tokens } = await start(rig)
  const second = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  const third = await tokensOf(await refresh(rig, clientId, second.refresh_token))
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
  t.equal(await refusal(await refresh(rig, clientId, third.refresh_token)), '400 invalid_grant')
})

t.test('refresh: reuse of a code revokes its tokens', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig)
  const tokens = await tokensOf(await redeem(rig, done))
  const other = await registerClient(rig)
  t.equal(await refusal(await redeem(rig, done, { client_id: other })), '400 invalid_grant')
  t.equal(await rig.server.isLive(callerOf(tokens.access_token)), true, 'rejected from another client')
  t.equal(await refusal(await redeem(rig, done)), '400 invalid_grant')
  t.equal(await rig.server.isLive(callerOf(tokens.access_token)), false)
  t.equal(await refusal(await refresh(rig, done.clientId, tokens.refresh_token)), '400 invalid_grant')
  t.ok(rig.events.some((event) => event.type === 'code_reused'))
})

t.test('refresh: forged, malformed and foreign tokens are rejected', async (t) => {
  const rig = await startAuthServer(t)
  const { clientId, tokens } = await start(rig)
  const token = tokens.refresh_token
  const [family = '', , mac = ''] = token.slice(6).split('.')
  for (const bad of [
    '',
    'x',
    token.slice(0, -1),
    `${token}A`,
    `gh_rt_${family}.1.${mac}`,
    `gh_rt_${family}.00.${mac}`,
  ]) {
    t.match(await refusal(await refresh(rig, clientId, bad)), /^400 invalid_(grant|request)$/)
  }
  const other = await registerClient(rig)
  t.equal(await refusal(await refresh(rig, other, token)), '400 invalid_grant')
  t.equal((await refresh(rig, clientId, token)).status, 200, 'the owner’s token still works')
})

t.test(
  'refresh: scope and resource can be narrowed but not widened, and the grant stays unchanged',
  async (t) => {
    const [a, b] = ['https://a.example/mcp', 'https://b.example/mcp']
    const rig = await startAuthServer(t, { config: { allowedAudiences: [a, b] } })
    const done = await login(rig, { scope: 'openid offline_access email' })
    const first = await tokensOf(await redeem(rig, done, { resource: a }))
    t.equal(
      await refusal(
        await refresh(rig, done.clientId, first.refresh_token, { scope: 'openid profile', resource: a }),
      ),
      '400 invalid_scope',
    )
    t.equal(
      await refusal(
        await refresh(rig, done.clientId, first.refresh_token, { resource: 'https://c.example' }),
      ),
      '400 invalid_target',
    )
    const narrow = await tokensOf(
      await refresh(rig, done.clientId, first.refresh_token, { scope: 'email', resource: b }),
    )
    t.equal(narrow.scope, 'email')
    t.same(decodeJwt(narrow.access_token).aud, [b])
    t.equal(narrow.id_token, '', 'no openid, no ID token')
    const wide = await tokensOf(await refresh(rig, done.clientId, narrow.refresh_token, { resource: a }))
    t.equal(wide.scope, 'openid offline_access email')
  },
)

t.test('refresh: a new token has its own iat and jti, and the ID token has no nonce', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig, { nonce: 'n' })
  const first = await tokensOf(await redeem(rig, done))
  rig.pass(60_000)
  const second = await tokensOf(await refresh(rig, done.clientId, first.refresh_token))
  const [a, b] = [decodeJwt(first.access_token), decodeJwt(second.access_token)]
  t.ok((b.iat ?? 0) - (a.iat ?? 0) >= 60)
  t.not(a.jti, b.jti)
  t.equal(a['auth_time'], b['auth_time'])
  const id = decodeJwt(second.id_token)
  t.equal(id['nonce'], undefined)
  t.equal(id.sub, decodeJwt(first.id_token).sub)
})

t.test('refresh: an unused token and a used family expire after their lifetimes', async (t) => {
  const hour = 3_600_000
  const rig = await startAuthServer(t, { config: { refreshTokenMs: 2 * hour, grantMs: 5 * hour } })
  const idle = await start(rig)
  rig.pass(2 * hour)
  t.equal(await refusal(await refresh(rig, idle.clientId, idle.tokens.refresh_token)), '400 invalid_grant')
  const busy = await start(rig)
  let token = busy.tokens.refresh_token
  for (let n = 0; n < 4; n++) {
    rig.pass(hour)
    token = (await tokensOf(await refresh(rig, busy.clientId, token))).refresh_token
  }
  rig.pass(hour)
  t.equal(await refusal(await refresh(rig, busy.clientId, token)), '400 invalid_grant')
})

t.test('refresh: a family outlives its access token and a restart of the process', async (t) => {
  const rig = await startAuthServer(t)
  const { tokens } = await start(rig)
  const second = await rig.replica()
  const caller = callerOf(tokens.access_token)
  t.equal(await second.server.isLive(caller), true)
  t.ok((await second.server.upstreamTokens.get(caller))?.accessToken)
})
