/**
 * `vmcp validate` and `serve` with an embedded authorization server: both files are checked together, and all errors
 * are reported at once.
 */
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { makeKeys, oidcOf } from '../../helpers/authserver/hosted.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '3.spec.authServerConfig',
  '3.spec.authServerConfig.issuer',
  '3.config.outgoingAuth.upstreamInject.providerName',
)

const origin = 'http://127.0.0.1:4999'

function files(t: Test) {
  const dir = t.testdir({})
  const keys = makeKeys(dir)
  const upstream = (name: string) => ({
    name,
    type: 'oidc',
    oidcConfig: { issuerUrl: 'https://idp.example', clientId: 'x', redirectUri: `${origin}/oauth/callback` },
  })
  const server = (more: object = {}): void =>
    writeFileSync(
      join(dir, 'authserver-config.yaml'),
      JSON.stringify({
        issuer: origin,
        allowedAudiences: [`${origin}/mcp`],
        signingKeyFiles: keys.signing,
        hmacSecretFiles: keys.hmac,
        upstreamProviders: [upstream('corp'), upstream('code')],
        ...more,
      }),
    )
  const config = (backends: object, incomingAuth: object = { type: 'oidc', oidc: oidcOf(origin) }): void =>
    writeFileSync(
      join(dir, 'vmcp.yaml'),
      JSON.stringify({
        name: 'team',
        groupRef: 'team',
        incomingAuth,
        outgoingAuth: { source: 'inline', backends },
        aggregation: {},
        backends: Object.keys(backends).map((name) => ({
          name,
          url: 'http://127.0.0.1:9/mcp',
          transport: 'streamable-http',
        })),
      }),
    )
  const run = (command: string) => runGatehouse(['vmcp', command, '-c', join(dir, 'vmcp.yaml')])
  return { dir, keys, server, config, run, upstream }
}

const inject = (providerName: string) => ({ type: 'upstream_inject', upstreamInject: { providerName } })
const exchange = (subjectProviderName?: string) => ({
  type: 'token_exchange',
  tokenExchange: { tokenUrl: 'https://sts.example/token', subjectProviderName },
})

t.test('validate: two matching files are valid', async (t) => {
  const { server, config, run } = files(t)
  server()
  config({ a: inject('corp'), b: inject('code'), c: exchange('code') })
  const { code, stderr } = await run('validate')
  t.equal(code, 0, stderr)
})

for (const command of ['validate', 'serve']) {
  t.test(`${command}: all errors of both files are reported at once`, async (t) => {
    const { dir, server, config, run } = files(t)
    server({ disableUpstreamTokenInjection: true, primaryUpstreamProvider: 'corp' })
    writeFileSync(join(dir, 'hmac-0'), 'short')
    config(
      { a: inject('other'), b: exchange() },
      {
        type: 'oidc',
        oidc: { ...oidcOf(origin), issuer: 'https://other.example', audience: `${origin}/x` },
        authz: {
          type: 'cedar',
          policies: ['permit(principal, action, resource);'],
          primaryUpstreamProvider: 'none',
        },
      },
    )
    const { code, stderr } = await run(command)
    t.equal(code, 2)
    for (const part of [
      /32 bytes/,
      /incomingAuth\.oidc\.issuer: must be http:\/\/127\.0\.0\.1:4999/,
      /incomingAuth\.oidc\.audience: must be one of/,
      /incomingAuth\.authz\.primaryUpstreamProvider: unknown upstream provider "none"/,
      /outgoingAuth\.backends\.a\.upstreamInject\.providerName: "other" is not an upstream provider/,
      /outgoingAuth\.backends\.b\.tokenExchange\.subjectProviderName: must name one of .*corp, code/,
      /outgoingAuth\.backends\.b: token_exchange cannot be combined with disableUpstreamTokenInjection/,
    ])
      t.match(stderr, part)
  })
}

t.test(
  'validate: rejects a missing server, anonymous clients with a server, and a missing server file',
  async (t) => {
    const { dir, server, config, run } = files(t)
    config({ a: inject('corp') })
    t.match(await run('validate'), {
      code: 2,
      stderr: /providerName: requires an embedded authorization server/,
    })
    server()
    config({}, { type: 'anonymous' })
    t.match(await run('validate'), { code: 2, stderr: /incomingAuth\.type: must be oidc/ })
    const other = files(t)
    other.config({ a: inject('corp') })
    symlinkSync(join(dir, 'nowhere'), join(other.dir, 'authserver-config.yaml'))
    const broken = await other.run('validate')
    t.match(broken, { code: 2, stderr: /cannot be read/ })
    t.notMatch(broken.stderr, /requires an embedded/, 'no error that only follows from it')
  },
)

t.test('validate: a single provider is the default of an exchange', async (t) => {
  const { server, config, run, upstream } = files(t)
  server({ upstreamProviders: [upstream('corp')] })
  config({ b: exchange() })
  const { code, stderr } = await run('validate')
  t.equal(code, 0, stderr)
})
