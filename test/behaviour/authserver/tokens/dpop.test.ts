/** Bound tokens from the authorization server: codes, refreshing, machines, nonces, replay and the discovery document. */
import { decodeJwt } from 'jose'
import t from 'tap'
import type { Dpop } from '../../../../schemas/index.ts'
import {
  authorizeUrl,
  jsonOf,
  listenFor,
  login,
  type LoggedIn,
  pkce,
  redirectUri,
  refusal,
  registerClient,
  type Rig,
  type RigOptions,
  startAuthServer,
  tokenRequest,
  type Tokens,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../../helpers/authserver/declared-client.ts'
import { type DpopClient, makeDpopClient, type ProofChanges } from '../../../helpers/oauth/dpop-client.ts'

t.setTimeout(120_000)

const usual: Dpop = { mode: 'optional', requireNonce: false, proofMaxAge: '60s', replay: 'store' }
const secret = newSecret()

function start(
  t: Parameters<typeof startAuthServer>[0],
  dpop: Partial<Dpop> | undefined,
  more: RigOptions = {},
) {
  const config = (issuer: string) => ({
    dpop: dpop && { ...usual, ...dpop },
    clients: [
      declared('job', [`${issuer}/mcp`], { secrets: [() => secret] }),
      declared('bound', [`${issuer}/mcp`], { secrets: [() => secret], isBound: true }),
    ],
    allowedAudiences: [`${issuer}/mcp`],
  })
  return startAuthServer(t, { config, ...more })
}

/** Sends a token request, with a proof if a client is given. Another replica can be addressed with `at`. */
async function ask(
  rig: Pick<Rig, 'issuer'>,
  form: Record<string, string | undefined>,
  client?: DpopClient,
  { at = rig, ...changes }: ProofChanges & { readonly at?: Pick<Rig, 'issuer'> } = {},
): Promise<Response> {
  const url = `${rig.issuer}/oauth/token`
  return tokenRequest(at, form, client ? { dpop: await client.proof('POST', url, undefined, changes) } : {})
}

const codeForm = ({ clientId, code, verifier }: LoggedIn) => ({
  grant_type: 'authorization_code',
  code,
  code_verifier: verifier,
  client_id: clientId,
  redirect_uri: redirectUri,
})
const refreshForm = (clientId: string, { refresh_token: token }: Tokens) => ({
  grant_type: 'refresh_token',
  refresh_token: token,
  client_id: clientId,
})
const machineForm = (id: string) => ({
  grant_type: 'client_credentials',
  client_id: id,
  client_secret: secret,
})

const boundTo = (token: string) => decodeJwt(token)['cnf']

await t.test('a public client: the code, the access token and the refresh token are bound', async (t) => {
  const rig = await start(t, {})
  const replica = await listenFor(t, await rig.replica())
  const [client, thief] = [await makeDpopClient(), await makeDpopClient()]
  const done = await login(rig, { dpop_jkt: client.jkt })
  t.equal(await refusal(await ask(rig, codeForm(done))), '400 invalid_grant', 'no proof')
  t.equal(await refusal(await ask(rig, codeForm(done), thief)), '400 invalid_grant', 'another key')
  t.equal(
    await refusal(await ask(rig, codeForm(done), client, { claims: { htm: 'GET' } })),
    '400 invalid_dpop_proof',
  )
  const response = await ask(rig, codeForm(done), client)
  t.equal((await jsonOf(response.clone()))['token_type'], 'DPoP')
  const tokens = await tokensOf(response)
  t.same(boundTo(tokens.access_token), client.cnf)

  const form = refreshForm(done.clientId, tokens)
  for (const at of [rig, replica]) {
    t.equal(await refusal(await ask(rig, form, undefined, { at })), '400 invalid_grant', 'no proof')
    t.equal(await refusal(await ask(rig, form, thief, { at })), '400 invalid_grant', 'another key')
  }
  const next = await tokensOf(await ask(rig, form, client, { at: replica }))
  t.same(boundTo(next.access_token), client.cnf)
  // Within the grace period, the same request returns the successor again.
  t.equal(await refusal(await ask(rig, form, thief)), '400 invalid_grant', 'another key in the grace period')
  t.equal(await refusal(await ask(rig, form)), '400 invalid_grant', 'no proof in the grace period')
  t.equal((await tokensOf(await ask(rig, form, client))).refresh_token, next.refresh_token)
  // The grant is still live. The replica has another signing key, so the token comes from the server itself.
  const last = await tokensOf(await ask(rig, refreshForm(done.clientId, next), client))

  const bearer = { authorization: `Bearer ${last.access_token}` }
  t.equal((await fetch(`${rig.issuer}/oauth/userinfo`, { headers: bearer })).status, 401, 'userinfo')
  const body = new URLSearchParams({ token: last.access_token })
  const asked = await fetch(`${rig.issuer}/oauth/introspect`, { method: 'POST', headers: bearer, body })
  t.equal(asked.status, 401, 'introspection with a bound token as Bearer')
})

await t.test('without dpop_jkt, the first proof binds the refresh token', async (t) => {
  const rig = await start(t, {})
  const [client, thief] = [await makeDpopClient(), await makeDpopClient()]
  const done = await login(rig)
  const tokens = await tokensOf(await ask(rig, codeForm(done), client))
  t.equal(await refusal(await ask(rig, refreshForm(done.clientId, tokens), thief)), '400 invalid_grant')
  const unbound = await login(rig)
  const free = await tokensOf(await ask(rig, codeForm(unbound)))
  t.equal(boundTo(free.access_token), undefined)
  const userInfo = async (token: string) =>
    (await fetch(`${rig.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } })).status
  t.equal(await userInfo(free.access_token), 200, 'userinfo with an unbound token')
  t.equal(await userInfo(tokens.access_token), 401, 'userinfo with a bound token')
  const later = await tokensOf(await ask(rig, refreshForm(unbound.clientId, free), thief))
  t.same(boundTo(later.access_token), thief.cnf, 'a later proof binds the access token')
})

await t.test('dpop_jkt must be a thumbprint, and is ignored without DPoP', async (t) => {
  const on = await start(t, {})
  const off = await start(t, undefined)
  for (const [rig, error] of [
    [on, 'invalid_request'],
    [off, undefined],
  ] as const) {
    const parameters = {
      client_id: await registerClient(rig),
      code_challenge: pkce().challenge,
      dpop_jkt: 'x',
    }
    const response = await fetch(authorizeUrl(rig, parameters), { redirect: 'manual' })
    const location = new URL(response.headers.get('location') ?? 'x:')
    t.equal(location.searchParams.get('error') ?? undefined, error)
  }
})

await t.test('machines: optional, bound by declaration, or all bound', async (t) => {
  const client = await makeDpopClient()
  const tokenTypeOf = async (response: Response) => {
    const { token_type: type, access_token: token } = await jsonOf(response)
    return `${String(type)} ${boundTo(String(token)) === undefined ? 'unbound' : 'bound'}`
  }
  const optional = await start(t, {})
  t.equal(await tokenTypeOf(await ask(optional, machineForm('job'))), 'Bearer unbound')
  t.equal(await tokenTypeOf(await ask(optional, machineForm('job'), client)), 'DPoP bound')
  t.equal(await refusal(await ask(optional, machineForm('bound'))), '400 invalid_dpop_proof')
  t.equal(await tokenTypeOf(await ask(optional, machineForm('bound'), client)), 'DPoP bound')
  const required = await start(t, { mode: 'required' })
  t.equal(await refusal(await ask(required, machineForm('job'))), '400 invalid_dpop_proof')
  const off = await start(t, { mode: 'off' })
  t.equal(await tokenTypeOf(await ask(off, machineForm('job'), client)), 'Bearer unbound')
  for (const rig of [off, await start(t, undefined)])
    t.equal(await refusal(await ask(rig, machineForm('bound'), client)), '400 unauthorized_client')
  const token = String((await jsonOf(await ask(optional, machineForm('job'), client)))['access_token'])
  const basic = `Basic ${Buffer.from(`job:${secret}`).toString('base64')}`
  const response = await fetch(`${optional.issuer}/oauth/introspect`, {
    method: 'POST',
    headers: { authorization: basic },
    body: new URLSearchParams({ token }),
  })
  t.match(await jsonOf(response), { active: true, token_type: 'DPoP', cnf: client.cnf })
})

await t.test('a proof is used once, on every replica, and an invalid proof uses up no code', async (t) => {
  const rig = await start(t, {})
  const replica = await listenFor(t, await rig.replica())
  const client = await makeDpopClient()
  const changes = { claims: { jti: 'same' } }
  t.equal((await ask(rig, machineForm('job'), client, changes)).status, 200)
  for (const at of [rig, replica])
    t.equal(
      await refusal(await ask(rig, machineForm('job'), client, { ...changes, at })),
      '400 invalid_dpop_proof',
    )
  const elsewhere = { claims: { htu: 'https://other.example/oauth/token' } }
  t.equal(await refusal(await ask(rig, machineForm('job'), client, elsewhere)), '400 invalid_dpop_proof')
  // A rejected request stores no record, so untrusted clients cannot fill the store.
  const wrong = { ...machineForm('job'), scope: 'admin' }
  const jti = { claims: { jti: 'kept' } }
  t.equal(await refusal(await ask(rig, wrong, client, jti)), '400 invalid_scope')
  t.equal((await ask(rig, machineForm('job'), client, jti)).status, 200)
  const none = await start(t, { replay: 'none' })
  t.equal((await ask(none, machineForm('job'), client, changes)).status, 200)
  t.equal((await ask(none, machineForm('job'), client, changes)).status, 200, 'replay: none')
})

await t.test('nonces: required, shared by replicas and renewed', async (t) => {
  const rig = await start(t, { requireNonce: true })
  const replica = await listenFor(t, await rig.replica())
  const client = await makeDpopClient()
  const form = machineForm('job')
  const send = (nonce?: string, at?: Pick<Rig, 'issuer'>) =>
    ask(rig, form, client, { nonce, nowMs: rig.now(), ...(at && { at }) })
  const first = await send()
  const nonce = first.headers.get('dpop-nonce') ?? ''
  t.equal(first.headers.get('cache-control'), 'no-store')
  t.equal(await refusal(first), '400 use_dpop_nonce')
  for (const at of [rig, replica]) t.equal((await send(nonce, at)).status, 200)
  t.equal(await refusal(await send(`${nonce.slice(0, -2)}AA`)), '400 use_dpop_nonce')
  rig.pass(160_000)
  const renewed = await send(nonce)
  t.equal(renewed.status, 200)
  const next = renewed.headers.get('dpop-nonce') ?? ''
  t.not(next, nonce)
  rig.pass(150_000)
  t.equal(await refusal(await send(nonce)), '400 use_dpop_nonce')
  t.equal((await send(next)).status, 200)
})

await t.test('metadata and CORS', async (t) => {
  for (const [mode, algs] of [
    ['off', undefined],
    ['optional', ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']],
  ] as const) {
    const rig = await start(t, { mode })
    const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
    t.same(metadata['dpop_signing_alg_values_supported'], algs)
    const preflight = await fetch(`${rig.issuer}/oauth/token`, { method: 'OPTIONS' })
    t.match(preflight.headers.get('access-control-allow-headers'), /DPoP/)
    t.match(preflight.headers.get('access-control-expose-headers'), /DPoP-Nonce/)
  }
})
