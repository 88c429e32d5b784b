/** `gatehouse doctor` with other targets than remote servers: a running gateway, manifests, a client's file, Redis. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  authServerFile,
  makeKeys,
  oidcOf,
  startFormProvider,
  startGateway,
} from '../../helpers/authserver/hosted.ts'
import { sendJson, startBare, startStage } from '../../helpers/doctor/staged.ts'
import { freePort, runGatehouse } from '../../helpers/gatehouse.ts'
import { makeCertificates, missingRedis, missingRedisTls, startRedis, until } from '../../helpers/redis.ts'
import { untyped } from '../../helpers/untyped.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

interface Row {
  readonly id: string
  readonly hop: string
  readonly result: string
  readonly code?: string
  readonly observed: string
}

async function doctor(args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { code, stdout, stderr } = await runGatehouse(['doctor', ...args, '-o', 'json'], '', env)
  if (stdout === '') throw new Error(stderr)
  const targets = untyped(JSON.parse(stdout)).targets as { target: string; checks: Row[] }[]
  const rows = targets.flatMap(({ checks }) => checks)
  return { code, stdout, targets, rows, row: (id: string) => rows.find((each) => each.id === id) }
}

await t.test('a virtual server with its own authorization server is healthy', async (t) => {
  const origin = `http://127.0.0.1:${await freePort()}`
  const certificates = makeCertificates()
  t.teardown(() => certificates.remove())
  const dir = t.testdir({})
  const providers = { corp: await startFormProvider(t, origin, certificates) }
  writeFileSync(
    join(dir, 'authserver-config.yaml'),
    authServerFile({ origin, providers, keys: makeKeys(dir), more: { cimd: { enabled: true } } }),
  )
  writeFileSync(
    join(dir, 'vmcp.yaml'),
    JSON.stringify({
      name: 'team',
      groupRef: 'team',
      incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
      outgoingAuth: { source: 'inline' },
      aggregation: {},
      backends: [],
    }),
  )
  await startGateway(t, {
    dir,
    args: ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', new URL(origin).port],
    ready: /virtual MCP server listening/,
    env: { NODE_EXTRA_CA_CERTS: certificates.caFile },
  })
  const { code, stdout, targets, row } = await doctor(['--gateway', origin, '--register'])
  t.equal(code, 0, stdout)
  t.same(
    targets.map(({ target }) => target),
    [origin, `${origin}/mcp`],
  )
  for (const id of ['health', 'challenge', 'resource', 'issuer', 'pkce', 'registration', 'register', 'keys'])
    t.match(row(id), { result: 'ok' }, id)
})

await t.test('a gateway: backends that are down, not ready, not MCP, or missing are reported', async (t) => {
  const stage = await startStage({ open: true })
  const vmcp = await startTestVmcp(
    { good: stage.url, gone: 'http://127.0.0.1:1/mcp' },
    {
      operational: {
        failureHandling: {
          partialFailureMode: 'best_effort',
          healthCheckInterval: '1s',
          unhealthyThreshold: 1,
        },
      },
    },
  )
  const status = vmcp.url.replace(/\/mcp$/, '/status')
  await until(async () => /"unhealthy"/.test(await (await fetch(status)).text()))
  const unready = await startBare((req, res) =>
    req.url === '/readyz'
      ? void sendJson(res, { status: 'not_ready', reason: 'the session store is down' }, 503)
      : void sendJson(res, { status: 'ok' }),
  )
  const other = await startBare((_req, res) => void res.writeHead(404).end())
  t.teardown(() => Promise.all([stage.close(), vmcp.close(), unready.close(), other.close()]))

  const partly = await doctor(['--gateway', vmcp.url.replace(/\/mcp$/, '')])
  t.equal(partly.code, 1, partly.stdout)
  t.match(partly.row('backends'), {
    hop: 'gateway',
    result: 'failed',
    code: 'gateway.backend',
    observed: '1 of 2 backends is down: 1 unreachable',
    fix: { text: /^gone: Connection failed: connection refused.*\n {2}Check that gone is running/ },
  })
  t.match(partly.row('initialize'), { result: 'ok' })

  const waiting = await doctor(['--gateway', `http://127.0.0.1:${unready.port}`])
  t.equal(waiting.code, 1)
  t.match(waiting.row('ready'), { code: 'gateway.not-ready', observed: 'the session store is down' })

  t.match((await doctor(['--gateway', `http://127.0.0.1:${other.port}`])).row('health'), {
    code: 'gateway.other',
  })
  t.match((await doctor(['--gateway', 'http://127.0.0.1:1'])).row('health'), { code: 'gateway.unreachable' })
})

await t.test(
  'manifests: invalid ones are reported by file and line, and their addresses are dialed',
  async (t) => {
    const stage = await startStage()
    t.teardown(() => stage.close())
    const manifest = (kind: string, name: string, spec: object) =>
      JSON.stringify({ apiVersion: 'gatehouse.dev/v1beta1', kind, metadata: { name }, spec })
    const folder = t.testdir({
      'a.yaml': `${manifest('MCPGroup', 'team', {})}\n---\n${manifest('MCPServerEntry', 'inside', {
        groupRef: { name: 'team' },
        remoteUrl: 'http://mcp.tools.svc.cluster.local:8080/mcp',
        transport: 'streamable-http',
        allowPrivateEndpoint: true,
      })}\n---\n${manifest('MCPOIDCConfig', 'corp', {
        type: 'inline',
        inline: { issuer: `${stage.issuer}/`, clientId: 'x' },
      })}\n`,
      'b.yaml': `${manifest('MCPServerEntry', 'bad', { groupRef: { name: 'team' } })}\n`,
    })
    const { code, rows, row, targets } = await doctor(['-f', folder])
    t.equal(code, 1)
    t.match(row('MCPGroup/team'), { hop: 'manifest', result: 'ok' })
    t.match(row('MCPServerEntry/bad'), {
      code: 'manifest.invalid',
      object: /b\.yaml:1/,
      observed: /remoteUrl/,
    })
    t.match(row('mcp.tools.svc.cluster.local:8080'), { result: 'skipped' })
    t.match(
      targets.map(({ target }) => target),
      [folder, `${stage.issuer}/`],
    )
    t.match(row('issuer'), { code: 'issuer.slash' })
    t.ok(rows.some(({ id, result }) => id === 'keys' && result === 'ok'))
  },
)

await t.test(
  'a client’s file: unusable entries are reported, and the server of an entry is checked',
  async (t) => {
    const stage = await startStage()
    t.teardown(() => stage.close())
    const home = t.testdir({})
    mkdirSync(join(home, '.cursor'))
    const write = (text: string) => writeFileSync(join(home, '.cursor/mcp.json'), text)
    const env = { ...process.env, HOME: home, SET_TOKEN: stage.token, XDG_CONFIG_HOME: '' }
    write(
      JSON.stringify({
        mcpServers: {
          local: { command: 'no-such-program-anywhere' },
          unset: { command: process.execPath, env: { KEY: '${env:UNSET_BY_THIS_TEST}' } },
          remote: { url: stage.url, headers: { Authorization: 'Bearer ${env:SET_TOKEN}' } },
          keyed: { url: `${stage.url}?key=in-the-query`, headers: { 'X-Api-Key': 'some-api-key' } },
        },
      }),
    )
    const { code, stdout, row, targets } = await doctor(['--client', 'cursor'], env)
    t.equal(code, 1)
    t.match(row('local'), {
      hop: 'client file',
      code: 'client-file.program',
      observed: /no-such-program-anywhere/,
    })
    t.match(row('unset'), { result: 'warning', code: 'client-file.variable', observed: /UNSET_BY_THIS_TEST/ })
    t.equal(targets[1]?.target, stage.url)
    t.match(row('tools'), { result: 'ok' }, 'the token of the entry is used')
    t.notMatch(stdout, stage.token)
    t.notMatch(stdout, /in-the-query|some-api-key/)
    t.notOk(
      targets[2]?.checks.some(({ id }) => id === 'registration'),
      'a key needs no login',
    )

    write('{"mcpServers": {')
    t.match((await doctor(['--client', 'cursor'], env)).row('file'), { code: 'client-file.unreadable' })
  },
)

await t.test('redis: states that lose sessions are reported', { skip: missingRedis }, async (t) => {
  const redis = await startRedis({ auth: { password: 'redis-password' } })
  t.teardown(() => redis.stop())
  const dir = t.testdir({ right: 'redis-password\n', wrong: 'wrong-password\n' })
  const url = `redis://${redis.addr}`
  const right = ['--redis', url, '--password-file', join(dir, 'right')]

  const well = await doctor(right)
  t.equal(well.code, 0, well.stdout)
  t.notMatch(well.stdout, 'redis-password')

  t.match((await doctor(['--redis', url, '--timeout', '2'])).row('redis'), { code: 'redis.credentials' })
  const wrong = await doctor(['--redis', url, '--password-file', join(dir, 'wrong'), '--timeout', '2'])
  t.match(wrong.row('redis'), { hop: 'store', code: 'redis.credentials' })
  t.notMatch(wrong.stdout, 'wrong-password')

  redis.cli('config', 'set', 'maxmemory-policy', 'allkeys-lru')
  t.match((await doctor(right)).row('redis-policy'), { result: 'failed', code: 'redis.policy' })
  redis.cli('config', 'set', 'maxmemory-policy', 'noeviction')
  redis.cli('config', 'set', 'maxmemory', '1mb')
  t.match((await doctor(right)).row('redis-memory'), { result: 'warning', code: 'redis.memory' })
  redis.cli('replicaof', '127.0.0.1', '1')
  t.match((await doctor(right)).row('redis-role'), { code: 'redis.role' })
})

await t.test('redis: TLS works', { skip: missingRedisTls }, async (t) => {
  const certificates = makeCertificates()
  const redis = await startRedis({ tls: certificates })
  t.teardown(async () => {
    await redis.stop()
    certificates.remove()
  })
  const secure = await doctor(['--redis', `rediss://${redis.addr}`, '--ca-file', certificates.caFile])
  t.equal(secure.code, 0, secure.stdout)
  t.match(secure.row('redis-tls'), { observed: 'TLS' })
  const { row } = await doctor(['--redis', `rediss://${redis.addr}`, '--timeout', '2'])
  t.match(row('redis'), { code: 'redis.unreachable', observed: /certificate/ })
})
