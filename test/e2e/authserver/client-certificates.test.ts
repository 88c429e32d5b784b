/**
 * Runs servers that request client certificates, as real processes. Tokens are bound to the certificates and checked.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { newSecret } from '../../helpers/authserver/declared-client.ts'
import {
  authServerFile,
  makeKeys,
  oidcOf,
  startBackend,
  startGateway,
} from '../../helpers/authserver/hosted.ts'
import { type Leaf, makeAuthority, mountSecret } from '../../helpers/certificates.ts'
import { freePort, runGatehouse } from '../../helpers/gatehouse.ts'
import { sendOverTls } from '../../helpers/oauth/mutual-tls.ts'

t.setTimeout(240_000)

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'job', version: '1' } },
}

/** Writes the files of a virtual server and a proxy, and returns the arguments that start one of them. */
async function prepare(t: Test, host: 'vmcp' | 'proxy') {
  const [port, backend] = [await freePort(), await startBackend(t)]
  const origin = `https://localhost:${port}`
  const dir = t.testdir({})
  const secret = newSecret()
  writeFileSync(join(dir, 'secret'), secret)
  const client = { clientId: 'ci', scopes: ['tools'], clientSecretFiles: [join(dir, 'secret')] }
  const more = {
    tlsClientCertificateBoundAccessTokens: true,
    clients: [{ ...client, tlsClientCertificateBoundAccessTokens: true }],
  }
  const file = authServerFile({ origin, providers: {}, keys: makeKeys(dir), more })
  writeFileSync(join(dir, 'authserver-config.yaml'), file)
  const vmcp = {
    name: 'team',
    groupRef: 'team',
    incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
    outgoingAuth: { source: 'inline' },
    aggregation: {},
    backends: [{ name: 'who', url: backend.url, transport: 'streamable-http' }],
  }
  const proxy = {
    name: 'guarded',
    targetUri: new URL(backend.url).origin,
    transport: 'streamable-http',
    host: '127.0.0.1',
    port,
    oidc: oidcOf(origin),
  }
  writeFileSync(join(dir, 'vmcp.yaml'), JSON.stringify(vmcp))
  writeFileSync(join(dir, 'proxy.yaml'), JSON.stringify(proxy))
  const [servers, clients] = await Promise.all([makeAuthority(), makeAuthority()])
  const own = await servers.leaf()
  const tls = mountSecret({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clients.ca })
  const files = [`--tls-cert-file=${tls.certFile}`, `--tls-key-file=${tls.keyFile}`]
  const args =
    host === 'vmcp'
      ? ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port), ...files]
      : ['proxy', '--config', join(dir, 'proxy.yaml'), ...files]
  const form = { grant_type: 'client_credentials', client_id: 'ci', client_secret: secret }
  return { dir, origin, args, authority: `--tls-client-ca-file=${tls.caFile}`, ca: servers.ca, clients, form }
}

for (const host of ['vmcp', 'proxy'] as const) {
  t.test(`${host}: a token is accepted only with the certificate that it is bound to`, async (t) => {
    const { dir, origin, args, authority, ca, clients, form } = await prepare(t, host)
    const name = host === 'proxy' ? ['guarded'] : []
    await startGateway(t, {
      dir,
      args: [...args, authority, ...name],
      ready: /virtual MCP server listening|[Pp]roxy started/,
    })
    const [client, another] = [
      await clients.leaf({ usage: 'clientAuth' }),
      await clients.leaf({ usage: 'clientAuth' }),
    ]
    const metadata = await sendOverTls(`${origin}/.well-known/oauth-protected-resource`, { ca })
    t.match(metadata.body, { tls_client_certificate_bound_access_tokens: true })
    const issue = (presented?: Leaf) => sendOverTls(`${origin}/oauth/token`, { ca, client: presented, form })
    t.match(await issue(), { status: 400, body: { error: 'invalid_request' } })
    const token = String((await issue(client)).body['access_token'])
    t.match(decodeJwt(token)['cnf'], { 'x5t#S256': /^[\w-]{43}$/ })
    const call = (presented?: Leaf) =>
      sendOverTls(`${origin}/mcp`, {
        ca,
        client: presented,
        json: initialize,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' },
      })
    t.equal((await call(client)).status, 200)
    t.equal((await call(another)).status, 401)
    t.equal((await call()).status, 401)
  })

  t.test(`${host}: a server that does not ask for certificates cannot bind tokens to them`, async (t) => {
    const { args } = await prepare(t, host)
    const { code, stderr, stdout } = await runGatehouse([...args, ...(host === 'proxy' ? ['guarded'] : [])])
    t.not(code, 0)
    t.match(`${stdout}${stderr}`, /tlsClientCertificateBoundAccessTokens: requires --tls-client-ca-file/)
  })
}

t.test('invalid values of --tls-client-ca-file are reported', async (t) => {
  const { args, dir } = await prepare(t, 'vmcp')
  const broken = join(dir, 'broken')
  writeFileSync(broken, 'x')
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[...args, `--tls-client-ca-file=${broken}`], /contains no CA certificate/],
    [[...args, '--tls-client-ca-file=/none'], /\/none: the file cannot be read/],
    [
      [...args.filter((arg) => !arg.startsWith('--tls-')), `--tls-client-ca-file=${broken}`],
      /--tls-client-ca-file requires --tls-cert-file and --tls-key-file/,
    ],
  ]
  for (const [given, message] of rows) {
    const { code, stderr, stdout } = await runGatehouse(given)
    t.not(code, 0)
    t.match(`${stdout}${stderr}`, message)
  }
})
