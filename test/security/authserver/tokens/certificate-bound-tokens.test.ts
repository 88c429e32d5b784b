/** Attacks with tokens that are bound to a TLS client certificate. */
import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { decodeJwt, importPKCS8, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../../helpers/authserver/declared-client.ts'
import { serveMutualTls } from '../../../helpers/oauth/mutual-tls.ts'
import { type Leaf, makeAuthority } from '../../../helpers/certificates.ts'
import { makeDpopClient } from '../../../helpers/oauth/dpop-client.ts'
import { usual } from '../../../helpers/oauth/dpop-rig.ts'

const secret = newSecret()
const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()
const form = { grant_type: 'client_credentials', client_id: 'job', client_secret: secret }

const thumbprintOf = ({ cert }: Leaf): string =>
  createHash('sha256').update(new X509Certificate(cert).raw).digest('base64url')

async function start(t: Test) {
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      bindsCertificates: true,
      clients: [declared('job', [`${issuer}/mcp`], { secrets: [() => secret] })],
      secrets: () => ({ signingKeys: [signingKey], hmacSecrets: [] }),
    }),
  })
  const tls = await serveMutualTls(t, rig, { dpop: usual })
  const client = await tls.clients.leaf({ usage: 'clientAuth' })
  const { body } = await tls.send('/oauth/token', { client, form })
  return { rig, tls, client, token: String(body['access_token']) }
}

async function withConfirmation(token: string, cnf: unknown): Promise<string> {
  return new SignJWT({ ...decodeJwt(token), cnf })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
    .sign(await importPKCS8(signingKey, 'ES256'))
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

t.test('headers with a certificate are never trusted', async (t) => {
  const { tls, client, token } = await start(t)
  const pem = encodeURIComponent(client.cert)
  const der = new X509Certificate(client.cert).raw.toString('base64')
  const spoofed = {
    'X-Forwarded-Client-Cert': `Hash=${Buffer.from(thumbprintOf(client), 'base64url').toString('hex')};Cert="${pem}"`,
    'Client-Cert': `:${der}:`,
    'X-SSL-Client-Cert': pem,
    'X-Client-Cert': pem,
    'ssl-client-cert': pem,
    'ssl-client-verify': 'SUCCESS',
  }
  const another = await tls.clients.leaf({ usage: 'clientAuth' })
  for (const presented of [undefined, another]) {
    const answer = await tls.send('/mcp', { client: presented, headers: { ...bearer(token), ...spoofed } })
    t.equal(answer.status, 401)
    const issued = await tls.send('/oauth/token', { client: presented, form, headers: spoofed })
    const { cnf } = decodeJwt(String(issued.body['access_token']))
    t.strictSame(cnf, presented && { 'x5t#S256': thumbprintOf(presented) })
  }
})

t.test('a certificate of another authority counts as none', async (t) => {
  const { tls, token } = await start(t)
  const foreign = await (await makeAuthority()).leaf({ usage: 'clientAuth' })
  const expired = await tls.clients.leaf({ usage: 'clientAuth', endsInMs: -1_000 })
  for (const presented of [foreign, expired]) {
    const issued = await tls.send('/oauth/token', { client: presented, form })
    t.equal(decodeJwt(String(issued.body['access_token']))['cnf'], undefined)
    const bound = await withConfirmation(token, { 'x5t#S256': thumbprintOf(presented) })
    t.equal((await tls.send('/mcp', { client: presented, headers: bearer(bound) })).status, 401)
    t.equal(tls.reasons.at(-1), 'certificate')
  }
})

t.test(
  'each malformed or unknown confirmation is rejected, with the certificate on the connection',
  async (t) => {
    const { tls, client, token } = await start(t)
    const x5t = thumbprintOf(client)
    t.equal((await tls.send('/mcp', { client, headers: bearer(token) })).status, 200)
    const hex = Buffer.from(x5t, 'base64url').toString('hex')
    for (const cnf of [
      {},
      'x',
      [x5t],
      { 'x5t#S256': '' },
      { 'x5t#S256': [x5t] },
      { 'x5t#S256': hex },
      { 'x5t#S256': `${x5t}=` },
      { 'x5t#S256': x5t, kid: 'x' },
      { 'x5t#s256': x5t },
      { x5t: x5t },
    ]) {
      const headers = bearer(await withConfirmation(token, cnf))
      t.equal((await tls.send('/mcp', { client, headers })).status, 401, JSON.stringify(cnf))
    }
  },
)

t.test('a token that is bound to a key and a certificate needs both', async (t) => {
  const { rig, tls, client, token } = await start(t)
  const key = await makeDpopClient()
  const both = await withConfirmation(token, { ...key.cnf, 'x5t#S256': thumbprintOf(client) })
  const proved = async () => ({
    authorization: `DPoP ${both}`,
    dpop: await key.proof('GET', rig.resource, both),
  })
  t.equal((await tls.send('/mcp', { client, headers: await proved() })).status, 200)
  t.equal((await tls.send('/mcp', { headers: await proved() })).status, 401, 'no certificate')
  t.equal((await tls.send('/mcp', { client, headers: bearer(both) })).status, 401, 'no proof')
  const unproved = { authorization: `DPoP ${token}`, dpop: await key.proof('GET', rig.resource, token) }
  t.equal(
    (await tls.send('/mcp', { client, headers: unproved })).status,
    401,
    'the scheme DPoP without a key',
  )
})

t.test('a bound token is rejected by a listener that does not ask for certificates', async (t) => {
  const { rig, client, token } = await start(t)
  const plain = await serveMutualTls(t, rig, { asks: false })
  t.equal((await plain.send('/mcp', { client, headers: bearer(token) })).status, 401)
  t.equal(plain.reasons.at(-1), 'certificate')
  const userinfo = await plain.send('/oauth/userinfo', { client, headers: bearer(token) })
  t.equal(userinfo.status, 401, 'a bound token is no bearer token')
})
