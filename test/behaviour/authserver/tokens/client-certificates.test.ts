/** Tokens that are bound to TLS client certificates (RFC 8705), over real connections. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AuthServerConfig } from '../../../../runtime/config/index.ts'
import { type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../../helpers/authserver/declared-client.ts'
import {
  accessTokenType,
  exchangeGrant,
  startDelegation,
  delegateSecret,
} from '../../../helpers/authserver/delegation.ts'
import { type MutualTls, serveMutualTls } from '../../../helpers/oauth/mutual-tls.ts'
import { TestClient } from '../../../helpers/authserver/test-client.ts'
import { type Leaf, makeAuthority } from '../../../helpers/certificates.ts'

const secret = newSecret()
const machine = (clientId: string) => ({
  grant_type: 'client_credentials',
  client_id: clientId,
  client_secret: secret,
})

const thumbprintOf = ({ cert }: Leaf): string =>
  createHash('sha256').update(new X509Certificate(cert).raw).digest('base64url')

async function start(
  t: Test,
  config: Partial<AuthServerConfig> = {},
): Promise<{ readonly rig: Rig; readonly tls: MutualTls; readonly client: Leaf }> {
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      bindsCertificates: true,
      clients: [
        declared('job', [`${issuer}/mcp`], { secrets: [() => secret] }),
        declared('bound', [`${issuer}/mcp`], { secrets: [() => secret], isCertificateBound: true }),
      ],
      ...config,
    }),
  })
  const tls = await serveMutualTls(t, rig)
  return { rig, tls, client: await tls.clients.leaf({ usage: 'clientAuth' }) }
}

const tokenOf = async (tls: MutualTls, client: Leaf | undefined, clientId = 'job'): Promise<string> => {
  const { status, body } = await tls.send('/oauth/token', { client, form: machine(clientId) })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return String(body['access_token'])
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

t.test('a token is bound to the certificate of its request, and accepted only with it', async (t) => {
  const { tls, client } = await start(t)
  const { body } = await tls.send('/oauth/token', { client, form: machine('job') })
  t.equal(body['token_type'], 'Bearer')
  const token = String(body['access_token'])
  t.strictSame(decodeJwt(token)['cnf'], { 'x5t#S256': thumbprintOf(client) })
  t.strictSame((await tls.send('/mcp', { client, headers: bearer(token) })).body, { subject: 'client:job' })
  const another = await tls.clients.leaf({ usage: 'clientAuth' })
  for (const presented of [undefined, another]) {
    const answer = await tls.send('/mcp', { client: presented, headers: bearer(token) })
    t.match(answer, { status: 401, body: { error: 'invalid_token' } })
    t.match(answer.headers['www-authenticate'], /error="invalid_token".*TLS client certificate/)
    t.equal(tls.reasons.at(-1), 'certificate')
  }
  t.equal((await tls.send('/mcp', { client, headers: bearer(token) })).status, 200, 'from the cache')
})

t.test('metadata announces bound tokens', async (t) => {
  const { rig, tls } = await start(t)
  const name = 'tls_client_certificate_bound_access_tokens'
  t.equal((await tls.send('/.well-known/oauth-authorization-server')).body[name], true)
  t.equal((await tls.send('/.well-known/oauth-protected-resource')).body[name], true)
  const plain = await serveMutualTls(t, rig, { asks: false })
  t.equal((await plain.send('/.well-known/oauth-protected-resource')).body[name], undefined)
})

t.test('without a certificate, only a client that requires one is rejected', async (t) => {
  const { tls, client } = await start(t)
  const token = await tokenOf(tls, undefined)
  t.equal(decodeJwt(token)['cnf'], undefined)
  t.equal((await tls.send('/mcp', { headers: bearer(token) })).status, 200)
  const rejected = await tls.send('/oauth/token', { form: machine('bound') })
  t.match(rejected, {
    status: 400,
    body: { error: 'invalid_request', error_description: /client certificate/ },
  })
  t.ok(decodeJwt(await tokenOf(tls, client, 'bound'))['cnf'])
})

t.test('a server without the setting binds nothing', async (t) => {
  const { tls, client } = await start(t, { bindsCertificates: false })
  t.equal(decodeJwt(await tokenOf(tls, client))['cnf'], undefined)
  const { body } = await tls.send('/.well-known/oauth-authorization-server')
  t.notOk('tls_client_certificate_bound_access_tokens' in body)
})

t.test('an exchanged token must come with its certificate', async (t) => {
  const { rig, user } = await startDelegation(t, { config: { bindsCertificates: true } })
  const tls = await serveMutualTls(t, rig)
  const client = await tls.clients.leaf({ usage: 'clientAuth' })
  const exchange = (clientId: string, subject: string, presented?: Leaf) =>
    tls.send('/oauth/token', {
      client: presented,
      form: {
        grant_type: exchangeGrant,
        client_id: clientId,
        client_secret: delegateSecret,
        subject_token: subject,
        subject_token_type: accessTokenType,
      },
    })
  const first = await exchange('agent', user.access, client)
  const bound = String(first.body['access_token'])
  t.strictSame(decodeJwt(bound)['cnf'], { 'x5t#S256': thumbprintOf(client) })
  const another = await tls.clients.leaf({ usage: 'clientAuth' })
  for (const presented of [undefined, another]) {
    t.match(await exchange('helper', bound, presented), { status: 400, body: { error: 'invalid_request' } })
    t.match(rig.events.at(-1), {
      type: 'client_rejected',
      reason: /certificate that the request does not prove/,
    })
  }
  t.equal((await exchange('helper', bound, client)).status, 200)
})

t.test("a public client's refresh token is bound to the certificate", async (t) => {
  const rig = await startAuthServer(t, { config: { bindsCertificates: true } })
  const tls = await serveMutualTls(t, rig)
  const client = await tls.clients.leaf({ usage: 'clientAuth' })
  const app = await TestClient.register(rig)
  const { code, verifier } = await app.login({ scope: 'openid offline_access' })
  const redeemed = await tls.send('/oauth/token', {
    client,
    form: {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      client_id: app.id,
      redirect_uri: app.redirectUri,
    },
  })
  t.equal(redeemed.status, 200, JSON.stringify(redeemed.body))
  const refresh = (presented: Leaf | undefined) =>
    tls.send('/oauth/token', {
      client: presented,
      form: {
        grant_type: 'refresh_token',
        client_id: app.id,
        refresh_token: String(redeemed.body['refresh_token']),
      },
    })
  const another = await tls.clients.leaf({ usage: 'clientAuth' })
  t.match(await refresh(undefined), { status: 400, body: { error: 'invalid_grant' } })
  t.match(await refresh(another), { status: 400, body: { error: 'invalid_grant' } })
  const next = await refresh(client)
  t.strictSame(decodeJwt(String(next.body['access_token']))['cnf'], { 'x5t#S256': thumbprintOf(client) })
})

t.test(
  'a resumed connection keeps its certificate, and a removed authority applies to new ones',
  async (t) => {
    const { tls, client } = await start(t)
    const token = await tokenOf(tls, client)
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 10 })
    const reused: boolean[] = []
    agent.on('keylog', (_line: Buffer, socket: TLSSocket) => {
      socket.once('secureConnect', () => reused.push(socket.isSessionReused()))
    })
    for (let n = 0; n < 2; n++)
      t.equal((await tls.send('/mcp', { client, agent, headers: bearer(token) })).status, 200)
    t.ok(reused.includes(true), 'the second connection resumes the session of the first')
    const next = await makeAuthority()
    const [cert, key] = [tls.files.certFile, tls.files.keyFile].map((file) => readFileSync(file, 'utf8'))
    tls.files.write({ 'tls.crt': cert ?? '', 'tls.key': key ?? '', 'ca.crt': next.ca })
    t.equal(tls.certificate.reload(), true)
    t.equal((await tls.send('/mcp', { client, headers: bearer(token) })).status, 401, 'a new connection')
    t.equal(
      (await tls.send('/mcp', { client, agent, headers: bearer(token) })).status,
      401,
      'a resumed session',
    )
  },
)
