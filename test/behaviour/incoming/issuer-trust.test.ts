/** Certificates that are trusted for the issuer of incoming tokens. A changed file takes effect without a restart. */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { loadProxyFile, resolveProxyConfig, resolveProxyFile } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { incomingFor } from '../../../runtime/proxy/run/incoming-auth.ts'
import { incomingConfig } from '../../../runtime/vmcp/server/incoming-config.ts'
import { makeFetches } from '../../../runtime/incoming/fetches.ts'
import { type Authenticator, makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { makeAuthority } from '../../helpers/certificates.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const realNow = Date.now
t.afterEach(() => {
  Date.now = realNow
})

/** Returns a key set, and a function that signs a token for alice with its key. */
async function signer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }]
  const sign = (issuer: string): Promise<string> =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setIssuer(issuer)
      .setAudience('door')
      .setSubject('alice')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(privateKey)
  return { keys, sign }
}

/**
 * Starts an issuer with a certificate from a private authority. Returns its addresses and a token that it has issued.
 */
async function startIssuer(t: Test) {
  const authority = await makeAuthority()
  const { keys, sign } = await signer()
  const server = createServer(await authority.leaf(), (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', connection: 'close' })
    res.end(JSON.stringify({ keys }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const issuer = `https://localhost:${address !== null && typeof address === 'object' ? address.port : 0}`
  return { ca: authority.ca, issuer, jwksUrl: `${issuer}/jwks`, token: await sign(issuer) }
}

type Issuer = Awaited<ReturnType<typeof startIssuer>>

const address = { port: 4483, url: 'http://127.0.0.1:4483' }

function ofProxy(input: Parameters<typeof resolveProxyConfig>[1]): Authenticator | undefined {
  const settings = resolveProxyConfig('demo', { targetUri: 'http://127.0.0.1:1', ...input }, {})
  return incomingFor(settings, silentLog)?.(address)
}

const configFile = (name: string, content: object): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'issuer-trust-')), name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const programs: Readonly<Record<string, (issuer: Issuer, caFile: string) => Authenticator | undefined>> = {
  'virtual server': ({ issuer, jwksUrl }, caBundlePath) => {
    const oidc = { issuer, jwksUrl, audience: 'door', clientId: 'door', caBundlePath }
    const config = vmcpConfig({}, { incomingAuth: { type: 'oidc', oidc } })
    return makeAuthenticator(incomingConfig(config, {}, silentLog), { log: silentLog })
  },
  'proxy with flags': ({ issuer, jwksUrl }, oidcCaBundle) =>
    ofProxy({ oidcIssuer: issuer, oidcJwksUrl: jwksUrl, oidcAudience: 'door', oidcCaBundle }),
  'proxy with a file': ({ issuer, jwksUrl }, caBundlePath) => {
    const oidc = { issuer, jwksUrl, audience: 'door', caBundlePath }
    const file = configFile('proxy.json', { name: 'demo', targetUri: 'http://127.0.0.1:1', oidc })
    return incomingFor(resolveProxyFile('demo', loadProxyFile(file), {}, {}), silentLog)?.(address)
  },
}

/** The flag or the field with the bundle. */
const settings: Readonly<Record<string, string>> = {
  'virtual server': 'incomingAuth.oidc.caBundlePath',
  'proxy with flags': '--oidc-ca-bundle',
  'proxy with a file': 'oidc.caBundlePath',
}

for (const [name, make] of Object.entries(programs))
  t.test(`${name}: a new bundle takes effect without a restart`, async (t) => {
    const [issuer, other] = await Promise.all([startIssuer(t), makeAuthority()])
    const caFile = join(mkdtempSync(join(tmpdir(), 'issuer-ca-')), 'ca.crt')
    writeFileSync(caFile, other.ca)
    const authenticator = make(issuer, caFile)
    t.teardown(() => authenticator?.close())
    writeFileSync(caFile, issuer.ca)
    // The file is not read again for a few seconds.
    Date.now = () => realNow() + 60_000
    t.match(await authenticator?.authenticate(`Bearer ${issuer.token}`), { subject: 'alice' })
  })

for (const [name, make] of Object.entries(programs))
  t.test(`${name}: a bundle with another authority does not make the issuer trusted`, async (t) => {
    const [issuer, other] = await Promise.all([startIssuer(t), makeAuthority()])
    const caFile = join(mkdtempSync(join(tmpdir(), 'issuer-ca-')), 'ca.crt')
    writeFileSync(caFile, other.ca)
    const authenticator = make(issuer, caFile)
    t.teardown(() => authenticator?.close())
    await t.rejects(async () => authenticator?.authenticate(`Bearer ${issuer.token}`), {
      code: 'AUTH_UNAVAILABLE',
    })
  })

for (const [name, make] of Object.entries(programs))
  t.test(`${name}: an unusable bundle is a start-up error that names its setting`, async (t) => {
    const issuer = await startIssuer(t)
    const folder = t.testdir({ 'ca.crt': '{}', 'empty.crt': '' })
    for (const [path, problem] of [
      [join(folder, 'missing.crt'), 'cannot be read'],
      [join(folder, 'ca.crt'), 'contains no PEM'],
      [join(folder, 'empty.crt'), 'contains no PEM'],
    ] as const) {
      const message = `${settings[name]}: the file ${path} ${problem}`
      t.throws(() => make(issuer, path), { code: 'INVALID_CONFIG', message })
    }
  })

t.test('proxy with a token for the key set: closing the authenticator closes its connections', async (t) => {
  const { keys, sign } = await signer()
  const disconnected = Promise.withResolvers<void>()
  const seen: (string | undefined)[] = []
  const server = createHttpServer({ keepAliveTimeout: 0 }, (req, res) => {
    seen.push(req.headers.authorization)
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }))
  })
  server.on('connection', (socket) => socket.once('close', disconnected.resolve))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const jwksAuthTokenPath = join(mkdtempSync(join(tmpdir(), 'issuer-token-')), 'token')
  writeFileSync(jwksAuthTokenPath, 'of-the-pod')
  const oidc = {
    issuer,
    jwksUrl: `${issuer}/jwks`,
    audience: 'door',
    jwksAllowPrivateIp: true,
    insecureAllowHttp: true,
    jwksAuthTokenPath,
  }
  const file = loadProxyFile(
    configFile('proxy.json', { name: 'demo', targetUri: 'http://127.0.0.1:1', oidc }),
  )
  const settings = resolveProxyFile('demo', file, {}, {})
  const authenticator = incomingFor(settings, silentLog)?.(address)
  t.match(await authenticator?.authenticate(`Bearer ${await sign(issuer)}`), { subject: 'alice' })
  t.same(seen, ['Bearer of-the-pod'])
  await authenticator?.close()
  await disconnected.promise
})

t.test('an unusable token file for the key set causes one warning, and the last token is sent', async (t) => {
  const server = await startLoopback(() => ({ body: { keys: [] } }))
  const jwksAuthTokenPath = join(t.testdir({ token: 'of-the-pod' }), 'token')
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (...line: unknown[]) => warnings.push(line) }
  let time = 0
  const parts = { proxy: undefined, now: () => time, log }
  const fetches = makeFetches({ jwksUrl: server.url, jwksAuthTokenPath }, parts)
  t.teardown(() => Promise.all([fetches.close(), server.close()]))
  writeFileSync(jwksAuthTokenPath, '')
  for (const laterMs of [10_000, 20_000]) {
    time = laterMs
    await fetches.keys(server.url)
  }
  t.same(
    server.seen.map(({ headers }) => headers.authorization),
    ['Bearer of-the-pod', 'Bearer of-the-pod'],
  )
  t.match(warnings, [['secret not reloaded; the last value stays in use', { reason: /is empty/ }]])
})
