/** Tokens of outgoing strategies and of logins at backends that are bound to a key (DPoP). */
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import { proofTarget, verifyProof } from '../../../runtime/oauth/index.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest } from '../../helpers/outgoing/outgoing.ts'
import {
  boundSecret,
  type BoundWorld,
  consent,
  lastCall,
  optional,
  required,
  startBoundWorld,
} from '../../helpers/proxy/bound-rig.ts'
import { backendState, startSignInServer } from '../../helpers/sign-in/rig.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

/** A virtual server that gets tokens for the backend `bound` with its own client. */
async function startGateway(t: Test, world: BoundWorld, more: object) {
  const clientCredentials = {
    clientId: 'job',
    clientSecretEnv: 'BOUND_SECRET',
    resource: world.resource,
    ...more,
  }
  const vmcp = await startTestVmcp(
    { bound: world.resource },
    { outgoingAuth: { source: 'inline', default: { type: 'client_credentials', clientCredentials } } },
    { env: { BOUND_SECRET: boundSecret } },
  )
  t.teardown(() => vmcp.close())
  const client = await connect('sdk1', vmcp.url)
  t.teardown(() => client.close())
  return client
}

await t.test(
  'virtual server: a token endpoint that demands proofs, and nonces of both servers',
  async (t) => {
    const world = await startBoundWorld(t)
    for (const more of [{ issuer: world.origin }, { tokenUrl: `${world.origin}/oauth/token` }]) {
      const client = await startGateway(t, world, more)
      t.equal(await client.callText('bound_whoami'), 'client:job')
      t.equal(await client.callText('bound_whoami'), 'client:job')
      const { scheme, dpop } = lastCall(world)
      t.equal(scheme, 'DPoP')
      t.match(decodeJwt(dpop), { htm: 'POST', htu: world.resource, nonce: String })
    }
    const proofs = world.calls.flatMap(({ headers }) =>
      headers['dpop'] === undefined ? [] : [headers['dpop']],
    )
    t.equal(new Set(proofs).size, proofs.length, 'each request has its own proof')
  },
)

await t.test(
  'virtual server: a backend that demands proofs gets a bound token after its challenge',
  async (t) => {
    const world = await startBoundWorld(t, { server: optional, resource: required })
    const client = await startGateway(t, world, { issuer: world.origin })
    t.equal(await client.callText('bound_whoami'), 'client:job')
    t.equal(lastCall(world).scheme, 'DPoP')
  },
)

await t.test('virtual server: a backend that also accepts bearer tokens gets them', async (t) => {
  const world = await startBoundWorld(t, { server: optional })
  const client = await startGateway(t, world, { issuer: world.origin })
  t.equal(await client.callText('bound_whoami'), 'client:job')
  t.match(lastCall(world), { scheme: 'Bearer', dpop: '' })
})

await t.test('virtual server: the user’s login at a backend is bound, and its key is kept', async (t) => {
  const world = await startBoundWorld(t)
  const state = t.testdir({})
  const local = await startSignInServer(t, { mail: world.resource }, state)
  await backendState(local, 'mail', ({ health }) => health === 'unauthenticated')
  await consent(local.address())
  await backendState(local, 'mail', ({ health }) => health === 'healthy')
  const client = await connect('sdk1', local.url)
  t.teardown(() => client.close())
  t.match(await client.callText('mail_whoami'), /./)
  const first = lastCall(world)
  t.equal(first.scheme, 'DPoP')
  await local.vmcp.close()
  const again = await startSignInServer(t, { mail: world.resource }, state)
  await backendState(again, 'mail', ({ health }) => health === 'healthy')
  t.match(local.kept(world.resource)?.proofKey, { crv: 'P-256' })
  t.equal(
    decodeProtectedHeader(lastCall(world).dpop).jwk?.x,
    local.kept(world.resource)?.proofKey?.x,
    'the same key',
  )
})

/** A token endpoint that answers with `respond`, and a strategy that uses it. */
async function scripted(
  t: Test,
  respond: (proof: string | undefined) => { readonly status?: number; readonly body: object },
  more: object = {},
) {
  let nonces = 0
  const server = await startLoopback(({ headers }) => ({
    ...respond(headers['dpop'] === undefined ? undefined : String(headers['dpop'])),
    headers: { 'dpop-nonce': `nonce-${++nonces}` },
  }))
  const outgoing = makeOutgoing()
  t.teardown(() => Promise.all([server.close(), outgoing.close()]))
  const config: StrategyConfig = {
    type: 'token_exchange',
    tokenExchange: { tokenUrl: `${server.url}/token`, ...more },
  }
  const strategy = outgoing.strategy(config)
  const send = async (host = 'backend.example') => {
    const request = testRequest({ url: new URL(`https://${host}/mcp`) })
    await strategy.apply(request, testCaller())
    return request
  }
  return { server, strategy, send }
}

const either = (proof: string | undefined) => ({
  body: { access_token: `token${proof ? '-bound' : ''}`, token_type: proof ? 'DPoP' : 'Bearer' },
})

await t.test('each backend has its own key, and only backends that demand proofs have one', async (t) => {
  const { server, strategy, send } = await scripted(t, either)
  const keys = new Set<string>()
  for (const host of ['a.example', 'b.example']) {
    const first = await send(host)
    t.match(first, { headers: { authorization: 'Bearer token' }, proof: undefined })
    t.ok(strategy.refused(first, 'DPoP algs="ES256 EdDSA"'), 'worth another attempt')
    const second = await send(host)
    t.equal(second.headers['authorization'], 'DPoP token-bound')
    const { jkt } = await verifyProof(second.proof?.sign('POST', second.url), {
      method: 'POST',
      isTarget: (url) => url === proofTarget(second.url.href),
      accessToken: 'token-bound',
      maxAgeMs: 60_000,
      nowMs: Date.now(),
    })
    keys.add(jkt)
    t.equal(strategy.refused(second, 'DPoP algs="ES256"'), false, 'a new token cannot help')
  }
  t.equal(keys.size, 2)
  t.match(await send('c.example'), { headers: { authorization: 'Bearer token' }, proof: undefined })
  const tokens = server.seen.length
  const third = await send('d.example')
  for (const challenge of ['Bearer, DPoP algs="ES256"', 'DPoP algs="RS256"', 'Bearer'])
    t.equal(strategy.refused(third, challenge), false, challenge)
  t.match((await send('d.example')).proof, undefined)
  t.equal(server.seen.length, tokens, 'no other token was requested')
})

await t.test(
  'a token endpoint that does not bind the token: the backend gets no unbound token',
  async (t) => {
    const { strategy, send } = await scripted(t, () => ({
      body: { access_token: 'x', token_type: 'Bearer' },
    }))
    t.ok(strategy.refused(await send(), 'DPoP'))
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED', message: /not bound to the key/ })
  },
)

await t.test('a token endpoint that never accepts a proof or a nonce gets three requests', async (t) => {
  for (const error of ['use_dpop_nonce', 'invalid_dpop_proof']) {
    const { server, send } = await scripted(t, () => ({ status: 400, body: { error } }))
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED', message: new RegExp(error) })
    const proofs = server.seen.map(({ headers }) => headers['dpop'])
    t.equal(proofs.length, error === 'use_dpop_nonce' ? 3 : 2)
    t.equal(proofs[0], undefined)
    t.equal(new Set(proofs).size, proofs.length, 'each proof is new')
    if (error === 'use_dpop_nonce') t.match(decodeJwt(String(proofs[2])), { nonce: 'nonce-2' })
  }
})

await t.test('a token in another header is never bound', async (t) => {
  const { strategy, send } = await scripted(t, either, { externalTokenHeaderName: 'X-Token' })
  const first = await send()
  t.match(first, { headers: { 'x-token': 'Bearer token' }, proof: undefined })
  t.equal(strategy.refused(first, 'DPoP'), false)
  t.same(strategy.headerNames, ['x-token'])
})
