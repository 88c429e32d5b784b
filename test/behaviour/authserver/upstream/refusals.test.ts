/**
 * Upstream tokens whose refresh is rejected: kept or lost according to the table of rejections, and not sent again in
 * vain.
 */
import { decodeJwt } from 'jose'
import t from 'tap'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import { login, redeem, tokensOf } from '../../../helpers/authserver/authserver.ts'
import { bearer, type PeerAnswers, startPeer } from '../../../helpers/authserver/oauth2-peer.ts'
import { tokenRefusals } from '../../../helpers/outgoing/token-refusals.ts'

function callerOf(token: string): Caller {
  const claims = decodeJwt(token)
  return makeCaller({ issuer: claims.iss ?? '', subject: claims.sub ?? '', claims, token })
}

for (const { name, response, refusal } of tokenRefusals) {
  const ends = refusal === 'grant' || refusal === 'request'
  await t.test(`${name}: the tokens are ${ends ? 'lost' : 'kept'}`, async (t) => {
    const responses: PeerAnswers = { token: { body: { ...bearer, expires_in: 60 } } }
    const peer = await startPeer(t, responses)
    const done = await login(peer.rig, { client_id: peer.clientId })
    const caller = callerOf((await tokensOf(await redeem(peer.rig, done))).access_token)
    responses.token = response
    peer.rig.pass(61_000)
    const get = () => peer.rig.server.upstreamTokens.get(caller, 'hub')
    await t.rejects(get(), { code: ends ? 'UPSTREAM_TOKEN_MISSING' : 'AUTH_UNAVAILABLE' })
    const asked = peer.seen('/token').length
    if (refusal !== 'temporary') {
      await get().catch(() => {})
      t.equal(peer.seen('/token').length, asked, 'no immediate second request')
    }
    if (ends) return
    responses.token = { body: bearer }
    peer.rig.pass(11_000)
    t.match(await get(), { accessToken: 'upstream-at' }, 'the refresh token is still there')
  })
}
