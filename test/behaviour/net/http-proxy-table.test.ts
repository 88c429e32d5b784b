/**
 * Every outgoing connection of Gatehouse, with a forward proxy as the only way out: only the proxy can resolve names,
 * and no host receives a direct connection. The same table is in docs/guides/http-proxy.md.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { proxyEnvironment, silentLog } from '../../../runtime/net/index.ts'
import { clusterApi, getObject } from '../../../runtime/kube/index.ts'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import { makeJsonPost } from '../../../runtime/policy/remote/json-post.ts'
import { consoleFetch } from '../../../runtime/cli/vmcp/console.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { relayProvider } from '../../../runtime/proxy/tunnel/relay-client.ts'
import { Secret } from '../../../runtime/observe/index.ts'
import { openEmbeddingService } from '../../../runtime/vmcp/features/search/embedding-service.ts'
import {
  authorizeUrl,
  pkce,
  redirectUri,
  registerClient,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import { upstream } from '../../helpers/authserver/oauth2-peer.ts'
import { startIsolatedNetwork } from '../../helpers/network/isolated-network.ts'
import { accessToken, outsideHosts } from '../../helpers/network/outside-hosts.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { testCaller, testRequest, testUpstream } from '../../helpers/outgoing/outgoing.ts'
import { json, rpc } from '../../helpers/proxy/rig.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'
import { greet } from '../../../runtime/toolkit/mcp-client/greeting.ts'
import { examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'

const network = await startIsolatedNetwork(outsideHosts)
t.teardown(() => network.close())
const { ca, proxy } = network
setDefaultCACertificates([...getCACertificates('default'), ca])
const caFile = join(mkdtempSync(join(tmpdir(), 'http-proxy-')), 'ca.pem')
writeFileSync(caFile, ca)
const env = {
  HTTP_PROXY: proxy.url,
  HTTPS_PROXY: proxy.url,
  NO_PROXY: 'excepted.example',
  GATEHOUSE_PROXY_RESOLVES_NAMES: 'true',
}
for (const [name, value] of Object.entries(env)) {
  process.env[name] = value
  delete process.env[name.toLowerCase()]
}

/** Runs the proxy command until `use` is done. */
async function withProxy(
  input: Parameters<typeof resolveProxyConfig>[1],
  use: (url: string, loginUrl: Promise<URL>) => Promise<void>,
): Promise<void> {
  const state = mkdtempSync(join(tmpdir(), 'http-proxy-state-'))
  const config = resolveProxyConfig('demo', input, { ...env, GATEHOUSE_STATE_DIR: state })
  const shown = Promise.withResolvers<URL>()
  const running = await runProxy(config, {
    log: silentLog,
    notify(line) {
      const url = /https:\/\/\S+/.exec(line)?.[0]
      if (url !== undefined) shown.resolve(new URL(url))
    },
    version: '0',
  })
  running.ready.catch((error: unknown) => shown.reject(error))
  try {
    await use(running.url, shown.promise)
  } finally {
    await running.close()
  }
}

const call = (url: string, headers: object = {}) =>
  fetch(`${url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body: rpc(1) })

async function withStrategy(t: Test, config: StrategyConfig): Promise<void> {
  const upstream = testUpstream({ 'alice corp': { accessToken: 'access', idToken: 'id-of-alice' } })
  const outgoing = makeOutgoing({ enableObo: true, upstream, stsEndpoint: () => 'https://sts.example' })
  const request = testRequest()
  await outgoing.strategy(config).apply(request, testCaller())
  t.ok(request.headers['authorization'])
  await outgoing.close()
}

interface Row {
  readonly connection: string
  /** Hosts that requests must reach through the proxy. */
  readonly hosts: readonly string[]
  run(t: Test): Promise<void>
}

const oidc = {
  issuer: 'https://idp.example',
  audience: 'https://gateway.example/mcp',
  resource: 'https://gateway.example/mcp',
}

const rows: readonly Row[] = [
  {
    connection: 'proxy: requests to the target',
    hosts: ['mcp.example'],
    run: (t) =>
      withProxy({ targetUri: 'https://mcp.example', remoteCaBundle: caFile }, async (url) => {
        const response = await call(url)
        t.equal(response.status, 200)
        t.match(await response.text(), 'hello')
      }),
  },
  {
    connection: 'proxy: login at the authorization server that the target names',
    hosts: ['login.example', 'idp.example', 'tokens.example'],
    run: (t) =>
      withProxy(
        {
          targetUri: 'https://login.example',
          remoteCaBundle: caFile,
          remoteAuth: true,
          remoteAuthCallbackPort: '0',
          remoteAuthSkipBrowser: true,
        },
        async (url, loginUrl) => {
          const asked = await loginUrl
          const back = new URL(asked.searchParams.get('redirect_uri') ?? '')
          back.searchParams.set('code', 'code')
          back.searchParams.set('state', asked.searchParams.get('state') ?? '')
          t.equal((await fetch(back)).status, 200)
          let response = await call(url)
          while (response.status === 503) response = await call(url)
          t.match(await response.text(), 'hello')
        },
      ),
  },
  {
    connection: 'proxy: keys of --oidc-issuer, on a host that its document names',
    hosts: ['idp.example', 'keys.example', 'mcp.example'],
    run: (t) =>
      withProxy(
        {
          targetUri: 'https://mcp.example',
          remoteCaBundle: caFile,
          oidcIssuer: 'https://idp.example',
          oidcAudience: 'https://gateway.example/mcp',
        },
        async (url) => {
          const response = await call(url, { authorization: `Bearer ${accessToken}` })
          t.equal(response.status, 200)
        },
      ),
  },
  {
    connection: 'virtual server: keys of the issuer of incoming tokens',
    hosts: ['idp.example', 'keys.example'],
    async run(t) {
      const authenticator = makeAuthenticator({ type: 'oidc', oidc })
      t.equal((await authenticator.authenticate(`Bearer ${accessToken}`)).subject, 'alice')
      await authenticator.close()
    },
  },
  {
    connection: 'introspection of incoming tokens',
    hosts: ['idp.example'],
    async run(t) {
      const config = {
        audience: oidc.audience,
        resource: oidc.resource,
        clientId: 'gateway',
        clientSecret: 'secret',
        introspectionUrl: 'https://idp.example/introspect',
      }
      const authenticator = makeAuthenticator({ type: 'oidc', oidc: config })
      t.equal((await authenticator.authenticate('Bearer opaque')).subject, 'alice')
      await authenticator.close()
    },
  },
  {
    connection: 'virtual server: backends, and telemetry to a collector',
    hosts: ['mcp.example', 'collector.example'],
    async run(t) {
      const telemetry = { endpoint: 'https://collector.example', tracingEnabled: true, samplingRate: '1.0' }
      const backend = { url: 'https://mcp.example/mcp', type: 'entry', addresses: 'public' }
      const vmcp = await startTestVmcp({ remote: backend }, { telemetry }, { env })
      t.match((await stateless(vmcp.url, 'tools/list')).text, 'remote_echo')
      await vmcp.close()
    },
  },
  {
    connection: 'strategy token_exchange',
    hosts: ['tokens.example'],
    run: (t) =>
      withStrategy(t, {
        type: 'token_exchange',
        tokenExchange: { tokenUrl: 'https://tokens.example/token', audience: 'backend' },
      }),
  },
  {
    connection: 'strategy obo',
    hosts: ['tokens.example'],
    run: (t) =>
      withStrategy(t, {
        type: 'obo',
        obo: { tokenUrl: 'https://tokens.example/token', clientId: 'a', clientSecret: 's', audience: 'b' },
      }),
  },
  {
    connection: 'strategy xaa',
    hosts: ['tokens.example'],
    run: (t) =>
      withStrategy(t, {
        type: 'xaa',
        xaa: {
          idpTokenUrl: 'https://tokens.example/idp',
          idpClientId: 'at-idp',
          targetTokenUrl: 'https://tokens.example/token',
          targetClientId: 'at-target',
          targetAudience: 'https://target.example',
          subjectProviderName: 'corp',
        },
      }),
  },
  {
    connection: 'strategy cloud_sts',
    hosts: ['sts.example'],
    run: (t) =>
      withStrategy(t, {
        type: 'cloud_sts',
        cloudSts: { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/r' },
      }),
  },
  {
    connection: 'authorization server: token endpoint and user info of a provider',
    hosts: ['tokens.example', 'idp.example'],
    async run(t) {
      const rig = await startAuthServer(t, {
        upstreams: ({ issuer }) => [
          upstream(issuer, 'https://idp.example', {
            tokenEndpoint: 'https://tokens.example/token',
            userInfo: {
              endpointUrl: 'https://idp.example/me',
              httpMethod: 'GET',
              additionalHeaders: {},
              subjectFields: ['sub'],
              nameFields: [],
              emailFields: [],
            },
          }),
        ],
      })
      const browser = new Browser()
      const clientId = await registerClient(rig)
      const start = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
      const consent = await browser.open(start)
      const leaving = await browser.press(consent, 'approve', 'https://idp.example/authorize')
      const back = new URL(leaving.url.searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('code', 'code')
      back.searchParams.set('state', leaving.url.searchParams.get('state') ?? '')
      const done = await browser.open(back, redirectUri)
      t.ok(done.url.searchParams.get('code'), done.text)
    },
  },
  {
    connection: 'authorization server: discovery of an OpenID provider',
    hosts: ['idp.example'],
    async run(t) {
      const rig = await startAuthServer(t, {
        upstreams: ({ issuer }) => [
          {
            name: 'corp',
            type: 'oidc',
            issuerUrl: 'https://idp.example',
            clientId: 'gatehouse',
            redirectUri: `${issuer}/oauth/callback`,
            scopes: ['openid'],
            additionalAuthorizationParams: {},
            subjectClaim: 'sub',
          },
        ],
      })
      const browser = new Browser()
      const clientId = await registerClient(rig)
      const start = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
      const leaving = await browser.press(
        await browser.open(start),
        'approve',
        'https://idp.example/authorize',
      )
      t.equal(leaving.url.host, 'idp.example')
    },
  },
  {
    connection: 'authorization server: metadata documents of clients',
    hosts: ['client.example'],
    async run(t) {
      const rig = await startAuthServer(t, {
        config: { cimd: { cacheMaxSize: 1, cacheTtlMs: 60_000, allowLoopback: false } },
      })
      const clientId = 'https://client.example/client.json'
      const page = await new Browser().open(
        authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
      )
      t.match(page.text, 'Described Client')
    },
  },
  {
    connection: 'webhooks and decision points',
    hosts: ['webhook.example'],
    async run(t) {
      const settings = { url: 'https://webhook.example/decide', timeout: '10s', insecureSkipVerify: false }
      const options = { who: 'webhook a', field: 'webhooks', maxAnswerBytes: 1_024, log: silentLog }
      const post = makeJsonPost(settings, options)
      t.match(String(await post.post('{}', {}, undefined)), 'allow')
      await post.close()
    },
  },
  {
    connection: 'embedding service of tool search',
    hosts: ['embed.example'],
    async run(t) {
      const url = 'https://embed.example/v1'
      const limits = { apiKey: undefined, timeoutMs: 10_000 }
      const service = openEmbeddingService({ protocol: 'compat', url, model: 'm', headers: {}, ...limits })
      t.equal((await service.embed(['text'], 1, new AbortController().signal)).length, 1)
      await service.close()
    },
  },
  {
    connection: 'console: login at its issuer',
    hosts: ['idp.example'],
    async run(t) {
      t.equal((await consoleFetch()('https://idp.example/.well-known/openid-configuration')).status, 200)
    },
  },
  {
    connection: 'tunnel to a relay',
    hosts: ['relay.example'],
    async run(t) {
      const provider = relayProvider({
        url: 'wss://relay.example',
        hostname: undefined,
        authToken: () => new Secret('token'),
        ca,
        proxy: undefined,
      })
      const down = Promise.withResolvers<unknown>()
      const tunnel = provider.open(1, { onUp() {}, onDown: down.resolve, log: silentLog })
      t.match(String(await down.promise), '403', 'the response of the relay')
      await tunnel.close()
    },
  },
  {
    connection: 'client status: the server of an entry',
    hosts: ['mcp.example'],
    async run(t) {
      const greeting = await greet('https://mcp.example/mcp', { timeoutMs: 10_000 })
      t.same(greeting, { kind: 'server', name: 'remote' })
    },
  },
  {
    connection: 'doctor: the target, and the servers that it names',
    hosts: ['login.example', 'idp.example', 'keys.example'],
    async run(t) {
      const target = new URL('https://login.example/mcp')
      const { findings } = await examineRemote({ target, ca, proxy: proxyEnvironment(env) })
      const failed = findings.filter(({ result }) => result === 'failed').map(({ code }) => code)
      t.same(
        failed.filter((code) => /^(dns|connect|tls|address)\./.test(code ?? '')),
        [],
      )
    },
  },
]

await t.test('requests to the API server of the same cluster never use the proxy', async (t) => {
  const account = mkdtempSync(join(tmpdir(), 'http-proxy-account-'))
  writeFileSync(join(account, 'ca.crt'), ca)
  writeFileSync(join(account, 'token'), 'token')
  const api = clusterApi({ KUBERNETES_SERVICE_HOST: 'mcp.example' }, account)
  const before = proxy.asked.length
  if (api) await t.rejects(getObject(api, '/api'), 'only the proxy resolves the name')
  t.equal(proxy.asked.length, before)
  await api?.fetch.close()
})

for (const { connection, hosts, run } of rows) {
  await t.test(connection, async (t) => {
    const before = proxy.asked.length
    await run(t)
    const asked = new Set(
      proxy.asked.slice(before).map((line) => /^\S+ (?:http:\/\/)?([^:/]+)/.exec(line)?.[1]),
    )
    t.same(asked, new Set(hosts))
    t.equal(network.direct, 0)
  })
}
