/**
 * `/readyz` of both hosts reports when their authorization server cannot work because of its store, its provider or its
 * registration.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../helpers/gatehouse.ts'
import { makeKeys, oidcOf, startBackend, startGateway } from '../../helpers/authserver/hosted.ts'
import {
  startOidcProvider,
  type TestProvider,
  type TestProviderOptions,
} from '../../helpers/authserver/oidc-provider.ts'
import { makeCertificates, missingRedisTls, startRedis, until } from '../../helpers/redis.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.dcrConfig.discoveryUrl', '2.storage.type')
t.setTimeout(180_000)

const hosts = ['proxy', 'vmcp'] as const
/** Response of the provider to the registration, different for each host. */
const refusals = {
  proxy: ['refuses', 400, {}],
  vmcp: ['redirects', 307, { location: '/elsewhere' }],
} as const
const skip = missingRedisTls
const certificates = skip ? undefined : makeCertificates()
t.teardown(() => certificates?.remove())

/** A provider at an https address. */
async function startProvider(t: Test, options: TestProviderOptions = {}): Promise<TestProvider> {
  const { certFile = '', keyFile = '' } = certificates ?? {}
  const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  const provider = await startOidcProvider({ ...options, tls })
  t.teardown(() => provider.close())
  return provider
}

interface Gateway {
  /** Status and reason of /readyz. */
  ready(): Promise<string>
}

/** Starts one host with the authorization server. `upstream` and `storage` are members of its file. */
async function start(
  t: Test,
  host: (typeof hosts)[number],
  upstream: (origin: string) => object,
  storage: object = { type: 'memory' },
): Promise<Gateway> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const backend = await startBackend(t)
  const dir = t.testdir({})
  const keys = makeKeys(dir)
  const write = (name: string, content: object): string => {
    writeFileSync(join(dir, name), JSON.stringify(content))
    return join(dir, name)
  }
  write('authserver-config.yaml', {
    issuer: origin,
    allowedAudiences: [`${origin}/mcp`],
    signingKeyFiles: keys.signing,
    hmacSecretFiles: keys.hmac,
    storage,
    upstreamProviders: [upstream(origin)],
  })
  const config =
    host === 'proxy'
      ? write('host.yaml', {
          name: 'guarded',
          targetUri: new URL(backend.url).origin,
          transport: 'streamable-http',
          host: '127.0.0.1',
          port,
          oidc: oidcOf(origin),
        })
      : write('host.yaml', {
          name: 'team',
          groupRef: 'team',
          incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
          outgoingAuth: { source: 'inline' },
          aggregation: {},
          backends: [{ name: 'one', url: backend.url, transport: 'streamable-http' }],
        })
  const args =
    host === 'proxy'
      ? ['proxy', '--config', config, 'guarded']
      : ['vmcp', 'serve', '-c', config, '--port', String(port)]
  await startGateway(t, {
    dir,
    args,
    ready: /[Pp]roxy started|virtual MCP server listening/,
    env: { REDIS_PASSWORD: '', NODE_EXTRA_CA_CERTS: certificates?.caFile },
  })
  return {
    async ready() {
      const response = await fetch(`${origin}/readyz`)
      const body = (await response.json()) as { reason?: string }
      return `${response.status} ${body.reason ?? ''}`.trim()
    },
  }
}

function oidc(origin: string, issuerUrl: string): object {
  const redirectUri = `${origin}/oauth/callback`
  return { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl, clientId: 'gatehouse', redirectUri } }
}

for (const host of hosts) {
  await t.test(`${host}: not ready while the store is down`, { skip }, async (t) => {
    const redis = await startRedis()
    const provider = await startProvider(t)
    const gateway = await start(t, host, (origin) => oidc(origin, provider.issuer), {
      type: 'redis',
      redis: { addr: redis.addr, passwordEnv: 'REDIS_PASSWORD', readTimeout: '200ms', writeTimeout: '200ms' },
    })
    await until(async () => (await gateway.ready()) === '200')
    await redis.stop()
    t.equal(await gateway.ready(), '503 the authorization server’s store does not respond')
    const again = await startRedis({ port: redis.port })
    t.teardown(() => again.stop())
    await until(async () => (await gateway.ready()) === '200')
  })

  await t.test(`${host}: not ready until the only provider is discovered`, { skip }, async (t) => {
    let down = true
    const provider = await startProvider(t, {
      intercept(_req, res) {
        if (down) res.writeHead(503).end()
        return down
      },
    })
    const gateway = await start(t, host, (origin) => oidc(origin, provider.issuer))
    t.equal(await gateway.ready(), '503 the upstream provider corp has not been discovered yet')
    down = false
    await until(async () => (await gateway.ready()) === '200')
  })

  const [what, status, headers] = refusals[host]
  await t.test(`${host}: not ready while the provider ${what} our registration`, { skip }, async (t) => {
    let asked = 0
    let accepts = false
    const provider = await startProvider(t, {
      intercept(req, res) {
        if (req.method !== 'POST' || req.url !== '/reg') return false
        asked++
        if (!accepts) res.writeHead(status, { ...headers, 'content-type': 'application/json' }).end('{}')
        return !accepts
      },
    })
    const gateway = await start(t, host, (origin) => ({
      name: 'hub',
      type: 'oauth2',
      oauth2Config: {
        authorizationEndpoint: `${provider.issuer}/auth`,
        tokenEndpoint: `${provider.issuer}/token`,
        redirectUri: `${origin}/oauth/callback`,
        scopes: ['openid'],
        dcrConfig: { discoveryUrl: `${provider.issuer}/.well-known/openid-configuration` },
      },
    }))
    await until(() => asked > 0)
    t.equal(
      await gateway.ready(),
      '503 the upstream provider hub has not accepted this server’s registration yet',
    )
    accepts = true
    await until(async () => (await gateway.ready()) === '200')
  })
}
