/** A Redis backup (docs/guides/backup.md): users stay signed in when the HMAC secrets are the same, and only then. */
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { decodeJwt } from 'jose'
import t from 'tap'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { makeRedisStore } from '../../../../runtime/store/index.ts'
import {
  login,
  redeem,
  refresh,
  refusal,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { missingRedis, type RedisProcess, startRedis } from '../../../helpers/redis.ts'

const keyPrefix = 'gh:auth:{ns:name}:'

await t.test('restore: a snapshot of Redis', { skip: missingRedis, timeout: 120_000 }, async (t) => {
  const snapshot = join(t.testdir({}), 'dump.rdb')
  const before = await startRedis()
  let after: RedisProcess | undefined
  const store = makeRedisStore({ addr: before.addr, keyPrefix })
  t.teardown(async () => {
    await store.close()
    await before.stop()
    await after?.stop()
  })
  const rig = await startAuthServer(t, { store })
  const done = await login(rig)
  const tokens = await tokensOf(await redeem(rig, done))
  const claims = decodeJwt(tokens.access_token)
  const caller = makeCaller({
    issuer: claims.iss ?? '',
    subject: claims.sub ?? '',
    claims,
    token: tokens.access_token,
  })
  const busy = await login(rig)
  const early = await tokensOf(await redeem(rig, busy))
  before.cli('--rdb', snapshot)
  const later = await tokensOf(await refresh(rig, busy.clientId, early.refresh_token))
  await before.stop()

  await t.test('an empty Redis: users sign in again and clients register again', async (t) => {
    const empty = await startRedis({ port: before.port })
    t.equal(await refusal(await refresh(rig, done.clientId, tokens.refresh_token)), '401 invalid_client')
    await empty.stop()
  })

  after = await startRedis({
    port: before.port,
    args: ['--dir', dirname(snapshot), '--dbfilename', 'dump.rdb'],
  })
  await t.test('the snapshot: access tokens, upstream tokens and refresh tokens work', async (t) => {
    t.equal(await rig.server.isLive(caller), true)
    t.ok((await rig.server.upstreamTokens.get(caller))?.accessToken)
    const next = await tokensOf(await refresh(rig, done.clientId, tokens.refresh_token))
    t.ok(next.refresh_token)
    const newest = await tokensOf(await refresh(rig, busy.clientId, later.refresh_token))
    t.ok(newest.refresh_token, 'a token that is newer than the snapshot')
    t.equal(
      await refusal(await refresh(rig, busy.clientId, early.refresh_token)),
      '400 invalid_grant',
      'an older one is reuse',
    )
  })

  await t.test('the snapshot without its HMAC secrets is unreadable', async (t) => {
    const other = makeRedisStore({ addr: before.addr, keyPrefix })
    t.teardown(() => other.close())
    const secrets = () => ({ signingKeys: [], hmacSecrets: [randomBytes(32)] })
    const rotated = await startAuthServer(t, { store: other, config: { secrets } })
    t.equal(await refusal(await refresh(rotated, done.clientId, tokens.refresh_token)), '401 invalid_client')
  })
})
