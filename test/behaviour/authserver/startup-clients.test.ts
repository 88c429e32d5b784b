/** Declared clients in the configuration file: their settings, every error at once, and reloads. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:http'
import { exportJWK } from 'jose'
import t, { type Test } from 'tap'
import { openAuthServer } from '../../../runtime/authserver/index.ts'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { Exchange } from '../../../runtime/net/index.ts'
import { jsonOf, keepingLog, refusal, textOf, tokenRequest } from '../../helpers/authserver/authserver.ts'
import {
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
} from '../../helpers/authserver/declared-client.ts'
import { callerOf } from '../../helpers/authserver/test-client.ts'

const key = await makeKey()
const secret = newSecret()

function folder(t: Test): (name: string, content: string) => string {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return (name, content) => {
    writeFileSync(join(dir, name), content)
    return join(dir, name)
  }
}

interface ConfigFile {
  readonly issuer?: string
  readonly clients?: readonly object[]
  readonly dpop?: object
  readonly tlsClientCertificateBoundAccessTokens?: boolean
}

/** The file as JSON, which is also valid YAML. */
const fileOf = ({ issuer = 'https://mcp.example.com', clients = [], ...more }: ConfigFile): string =>
  JSON.stringify({ issuer, allowedAudiences: [`${issuer}/mcp`, `${issuer}/other`], clients, ...more })

const keyed = { clientId: 'signer', scopes: ['tools:read'], jwks: { keys: [key.jwk] } }

t.test('file: token exchange gets its settings and the clients that may use it', (t) => {
  const issuer = 'https://mcp.example.com'
  const upstream = { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: issuer, clientId: 'x' } }
  const textWith = (tokenExchange: object): string =>
    JSON.stringify({
      issuer,
      allowedAudiences: [`${issuer}/mcp`],
      upstreamProviders: [upstream],
      clients: [{ ...keyed, subjectClients: ['app'] }],
      inboundGrants: { tokenExchange },
    })
  const config = parseAuthServerConfig(textWith({}), {})
  t.strictSame(config.tokenExchange, { lifeMs: 900_000, maxDelegationDepth: 5 })
  t.strictSame(config.clients?.[0]?.subjectClients, ['app'])
  const given = parseAuthServerConfig(textWith({ delegationLifespan: '1h', maxDelegationDepth: 10 }), {})
  t.strictSame(given.tokenExchange, { lifeMs: 3_600_000, maxDelegationDepth: 10 })
  t.equal(parseAuthServerConfig(fileOf({ clients: [keyed] }), {}).tokenExchange, undefined)
  t.end()
})

t.test('file: a client gets the defaults, and every field is read', (t) => {
  const write = folder(t)
  const files = [write('a', `${secret}\n`), write('b', newSecret())]
  const full = {
    clientId: 'full',
    scopes: ['tools:read', 'urn:x'],
    jwksUri: 'https://keys.example.com/jwks',
    signingAlg: 'EdDSA',
    resources: ['https://mcp.example.com/other'],
    tokenLifespan: '1h',
    dpopBoundAccessTokens: true,
    tlsClientCertificateBoundAccessTokens: true,
  }
  const job = { clientId: 'job', scopes: ['tools:read'], clientSecretFiles: files }
  const config = parseAuthServerConfig(
    fileOf({
      clients: [keyed, full, job],
      dpop: { mode: 'optional' },
      tlsClientCertificateBoundAccessTokens: true,
    }),
    {},
  )
  t.strictSame(config.upstreams, [])
  t.equal(config.bindsCertificates, true)
  t.equal(parseAuthServerConfig(fileOf({ clients: [keyed] }), {}).bindsCertificates, false)
  const [first, second, third] = config.clients ?? []
  t.strictSame(first, {
    clientId: 'signer',
    scopes: ['tools:read'],
    jwks: { keys: [key.jwk] },
    signingAlg: 'ES256',
    resources: ['https://mcp.example.com/mcp', 'https://mcp.example.com/other'],
    tokenMs: 900_000,
    isBound: false,
    isCertificateBound: false,
  })
  t.strictSame(second, {
    clientId: 'full',
    scopes: full.scopes,
    jwksUri: full.jwksUri,
    signingAlg: 'EdDSA',
    resources: full.resources,
    tokenMs: 3_600_000,
    isBound: true,
    isCertificateBound: true,
  })
  t.equal(third?.secrets?.[0]?.(), secret, 'trimmed')
  t.equal(third?.secrets?.length, 2)
  t.end()
})

t.test('file: every invalid client field is reported at once, one per line', async (t) => {
  const write = folder(t)
  const { privateKey } = key
  const privateJwk = { ...(await exportJWK(privateKey)), kid: 'x' }
  const rsa = await makeKey('RS256')
  const p384 = await makeKey('ES384')
  const keysOf = (...keys: readonly object[]): object => ({ jwks: { keys } })
  const client = (clientId: string, more: object): object => ({ clientId, scopes: ['a'], ...more })
  const text = fileOf({
    clients: [
      client('c0', { clientSecretFiles: [write('short', 'x'.repeat(31)), '/nowhere/secret'] }),
      client('c1', { ...keysOf(key.jwk), resources: ['https://elsewhere.example/mcp'] }),
      client('c2', keysOf(privateJwk)),
      client('c3', keysOf({ ...key.jwk, use: 'enc' }, { ...key.jwk, key_ops: ['sign'] })),
      client('c4', keysOf(rsa.jwk, p384.jwk, { ...key.jwk, alg: 'ES384' })),
      client('c5', { ...keysOf(key.jwk), signingAlg: 'RS256' }),
      client('c6', keysOf({ kty: 'EC', crv: 'P-256', x: 'x', y: 'y' })),
      client('c7', { jwksUri: 'https://user:x@keys.example.com/jwks' }),
      client('c8', { jwksUri: 'https://keys.example.com/jwks#x' }),
      client('c9', { clientSecretFiles: [write('empty', ' \n')] }),
    ],
  })
  let lines: readonly string[] = []
  try {
    parseAuthServerConfig(text, {})
  } catch (error) {
    lines = error instanceof Error ? error.message.split('\n').slice(1) : []
  }
  const expected = [
    /clients\[0\]\.clientSecretFiles\[0\] .*short must contain at least 32 characters/,
    /clients\[0\]\.clientSecretFiles\[1\] \/nowhere\/secret cannot be read/,
    /clients\[9\]\.clientSecretFiles\[0\] .*empty must contain at least 32 characters/,
    /clients\[1\]\.resources "https:\/\/elsewhere\.example\/mcp" is not in allowedAudiences/,
    /clients\[2\]\.jwks\.keys\[0\]\.d must not be set, because it is part of a private key; only public keys are allowed/,
    /clients\[3\]\.jwks\.keys\[0\]\.use must be sig/,
    /clients\[3\]\.jwks\.keys\[1\]\.key_ops must contain verify/,
    /clients\[4\]\.jwks\.keys\[0\] must be an EC key on P-256/,
    /clients\[4\]\.jwks\.keys\[1\] must be an EC key on P-256/,
    /clients\[4\]\.jwks\.keys\[2\]\.alg must be ES256, the client's signingAlg/,
    /clients\[5\]\.jwks\.keys\[0\] must be an RSA key of 2048 to 8192 bits/,
    /clients\[6\]\.jwks\.keys\[0\] is not a valid public key/,
    /clients\[7\]\.jwksUri must not contain a user name or password/,
    /clients\[8\]\.jwksUri must not have a fragment/,
  ]
  t.equal(lines.length, expected.length, lines.join('\n'))
  for (const [index, line] of lines.entries()) t.match(line, expected[index])
  t.notMatch(lines.join(), 'x'.repeat(31), 'no secret is shown')
})

t.test('file: the schema rejects invalid clients', (t) => {
  const rejects = (file: ConfigFile, message: RegExp): void =>
    void t.throws(() => parseAuthServerConfig(fileOf(file), {}), { code: 'INVALID_CONFIG', message })
  rejects(
    { clients: [] },
    /upstreamProviders.*at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set/,
  )
  rejects({ clients: [keyed, keyed] }, /clients/)
  rejects({ clients: [{ ...keyed, clientId: 'https://client.example/doc' }] }, /clientId/)
  rejects({ clients: [{ ...keyed, clientId: 'client:x' }] }, /clientId/)
  rejects({ clients: [{ ...keyed, jwksUri: 'https://a.example/jwks' }] }, /exactly one of/)
  rejects({ clients: [{ clientId: 'x', scopes: ['a'] }] }, /exactly one of/)
  rejects({ clients: [{ ...keyed, scopes: ['openid'] }] }, /need a user/)
  rejects({ clients: [{ ...keyed, tokenLifespan: '2h' }] }, /1m to 1h/)
  rejects({ clients: [{ ...keyed, signingAlg: 'HS256' }] }, /signingAlg/)
  rejects(
    { issuer: 'http://mcp.internal', clients: [{ clientId: 'x', scopes: ['a'], clientSecretFiles: ['/a'] }] },
    /https issuer/,
  )
  t.end()
})

/** Starts a server with the file, and a clock that the test advances. */
async function open(
  t: Test,
  clientsOf: (write: (name: string, content: string) => string) => readonly object[],
) {
  const write = folder(t)
  const host = createServer((req, res) => {
    const exchange = new Exchange(req, res)
    void server.routes(exchange.path)?.(exchange)
  })
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  const address = host.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const publish = (clients: readonly object[]): string => write('config.yaml', fileOf({ issuer, clients }))
  const recorded = keepingLog()
  let aheadMs = 0
  const server = await openAuthServer(
    publish(clientsOf(write)),
    {},
    {
      reloadEveryMs: 0,
      log: recorded.log,
      now: () => Date.now() + aheadMs,
    },
  )
  t.teardown(async () => {
    host.close()
    host.closeAllConnections()
    await server.close()
  })
  const askSigner = async (): Promise<Response> =>
    requestWithAssertion(
      { issuer },
      await signAssertion(key, { clientId: 'signer', issuer, nowMs: Date.now() + aheadMs }),
      { resource: `${issuer}/mcp` },
    )
  const askJob = (password: string): Promise<Response> =>
    tokenRequest(
      { issuer },
      {
        grant_type: 'client_credentials',
        client_id: 'job',
        client_secret: password,
        resource: `${issuer}/mcp`,
      },
    )
  const tokenOf = async (response: Promise<Response>): Promise<string> =>
    textOf((await jsonOf(await response))['access_token'])
  return {
    server,
    write,
    publish,
    askSigner,
    askJob,
    tokenOf,
    pass: (ms: number) => void (aheadMs += ms),
    logged: recorded.text,
  }
}

t.test('reload: a removed client loses its tokens without a restart', async (t) => {
  const self = await open(t, () => [keyed, { ...keyed, clientId: 'other' }])
  const caller = callerOf(await self.tokenOf(self.askSigner()))
  t.equal(await self.server.isLive(caller), true)
  await self.server.reload()
  t.equal(await self.server.isLive(caller), true, 'an unchanged file changes nothing')
  self.publish([{ ...keyed, clientId: 'other' }])
  await self.server.reload()
  t.equal(await self.server.isLive(caller), false)
  t.equal(await refusal(await self.askSigner()), '401 invalid_client')
  self.pass(2_000)
  self.publish([keyed])
  await self.server.reload()
  t.equal(await self.server.isLive(caller), false, 'nor when it is added again')
  self.pass(2_000)
  t.equal(await self.server.isLive(callerOf(await self.tokenOf(self.askSigner()))), true)
})

t.test('reload: scopes, resources and keys change without a restart', async (t) => {
  const self = await open(t, () => [keyed])
  t.match(await jsonOf(await self.askSigner()), { scope: 'tools:read' })
  self.publish([{ ...keyed, scopes: ['tools:write'], tokenLifespan: '1m' }])
  await self.server.reload()
  t.match(await jsonOf(await self.askSigner()), { scope: 'tools:write', expires_in: 60 })
  const next = await makeKey()
  self.publish([{ ...keyed, jwks: { keys: [next.jwk] } }])
  await self.server.reload()
  t.equal(await refusal(await self.askSigner()), '401 invalid_client')
})

t.test('reload: a file with an error keeps all clients', async (t) => {
  const self = await open(t, () => [keyed])
  self.publish([{ ...keyed, clientId: 'not valid!' }])
  await t.rejects(self.server.reload(), { code: 'INVALID_CONFIG', message: /clientId/ })
  self.publish([{ ...keyed, resources: ['https://elsewhere.example'] }])
  await t.rejects(self.server.reload(), { code: 'INVALID_CONFIG', message: /not in allowedAudiences/ })
  t.equal((await self.askSigner()).status, 200)
})

t.test('reload: secrets rotate, and an unusable one affects only its client', async (t) => {
  const next = newSecret()
  const job = (write: (name: string, content: string) => string) => ({
    clientId: 'job',
    scopes: ['tools:read'],
    clientSecretFiles: [write('first', secret), write('second', next)],
  })
  const self = await open(t, (write) => [keyed, job(write)])
  t.equal((await self.askJob(secret)).status, 200)
  t.equal((await self.askJob(next)).status, 200)
  const last = newSecret()
  self.write('first', `${last}\n`)
  await self.server.reload()
  t.equal((await self.askJob(last)).status, 200)
  t.equal(await refusal(await self.askJob(secret)), '401 invalid_client')
  self.write('first', 'too short')
  self.publish([{ ...keyed, clientId: 'other' }, job(() => self.write('first', 'too short'))])
  await t.rejects(self.server.reload(), { message: /clientSecretFiles\[0\].*at least 32 characters/ })
  t.equal((await self.askJob(last)).status, 200, 'the client keeps its secrets')
  t.equal(await refusal(await self.askSigner()), '401 invalid_client', 'and the removal takes effect')
})
