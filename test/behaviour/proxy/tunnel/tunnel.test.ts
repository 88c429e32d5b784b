/** Tunnels with their real counterparts: an sshd, a program, and the built-in relay. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { Secret } from '../../../../runtime/observe/index.ts'
import { makeTunnelProvider, runTunnel, startRelay } from '../../../../runtime/proxy/index.ts'
import type { RunningCommand } from '../../../../runtime/proxy/run/run.ts'
import { freePort, runGatehouse } from '../../../helpers/gatehouse.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { proves } from '../../../helpers/proves.ts'
import { json, rawRequest, rpc, startUpstream } from '../../../helpers/proxy/rig.ts'

proves('1.command.tunnel')

const target = await startUpstream((seen, res) => {
  if (seen.url === '/events') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: 1\n\n')
    setImmediate(() => res.end('data: 2\n\n'))
  } else res.end(`${seen.method} ${seen.url} ${seen.body.length} ${seen.headers.authorization ?? 'nobody'}`)
})
t.teardown(() => target.close())

interface Opened {
  readonly proxy: RunningCommand
  readonly urls: string[]
}

async function open(
  provider: string,
  args: unknown,
  env: Record<string, string | undefined> = {},
  input: ProxyInput = {},
): Promise<Opened> {
  const config = resolveProxyConfig('demo', { targetUri: target.url, ...input }, {})
  const urls: string[] = []
  const proxy = await runTunnel({
    config,
    provider: makeTunnelProvider(provider, JSON.stringify(args), { env, ca: undefined, proxy: undefined }),
    insecureUnauthenticated: input.oidcIntrospectionUrl === undefined,
    onUrl: (url) => urls.push(url),
    log: silentLog,
    notify() {},
  })
  return { proxy, urls }
}

await t.test(
  'relay: requests for the name reach the target, including streams and many at once',
  async (t) => {
    const relay = await startRelay({
      host: '127.0.0.1',
      port: 0,
      domain: 'tunnels.test',
      authToken: () => new Secret('t0ken'),
      log: silentLog,
    })
    const opened = await open(
      'relay',
      { url: `ws://127.0.0.1:${relay.port}`, hostname: 'demo' },
      { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't0ken' },
    )
    t.teardown(async () => {
      await opened.proxy.close({ graceMs: 0 })
      await relay.close({ graceMs: 0 })
    })
    t.same(opened.urls, [`http://demo.tunnels.test:${relay.port}`])
    const ask = (path: string, more: string[] = [], body = ''): Promise<string> =>
      rawRequest(
        relay.port,
        [`${body === '' ? 'GET' : 'POST'} ${path} HTTP/1.1`, 'Host: demo.tunnels.test', ...more],
        body,
      )
    t.match(await ask('/mcp?a=b', ['Authorization: Bearer client']), /GET \/mcp\?a=b 0 Bearer client/)
    t.match(await ask('/events'), /data: 1\n\n[\s\S]*data: 2\n\n/)
    t.match(await ask('/health'), /"transport":"streamable-http"/, 'the proxy’s own paths, not the relay’s')
    const large = 'x'.repeat(500_000)
    t.match(await ask('/mcp', [`Content-Length: ${large.length}`], large), /POST \/mcp 500000/)
    for (let round = 0; round < 3; round++) {
      const huge = 'x'.repeat(20_000_000)
      const refused = await ask('/mcp', [`Content-Length: ${huge.length}`], huge)
      t.match(refused, /^HTTP\/1\.1 413 [\s\S]*Request Entity Too Large/, 'the proxy’s rejection arrives')
    }
    const many = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(`/many/${i}`)))
    t.ok(many.every((response, i) => response.includes(`GET /many/${i} 0`)))
    t.match(await rawRequest(relay.port, ['GET / HTTP/1.1', 'Host: other.tunnels.test']), /^HTTP\/1\.1 404 /)
    t.match(await (await fetch(`${relay.url}/health`)).json(), { status: 'healthy', tunnels: 1 })
  },
)

await t.test('relay: a wrong token and a name that is in use are rejected at once', async (t) => {
  const relay = await startRelay({
    host: '127.0.0.1',
    port: 0,
    domain: 'tunnels.test',
    authToken: () => new Secret('t0ken'),
    log: silentLog,
  })
  const args = { url: `http://127.0.0.1:${relay.port}`, hostname: 'demo' }
  const first = await open('relay', args, { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't0ken' })
  t.teardown(async () => {
    await first.proxy.close({ graceMs: 0 })
    await relay.close({ graceMs: 0 })
  })
  await t.rejects(open('relay', args, { GATEHOUSE_TUNNEL_AUTH_TOKEN: 'wrong' }), {
    message: /rejected the token/,
  })
  await t.rejects(open('relay', args, { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't0ken' }), {
    message: /hostname is already in use/,
  })
  await t.rejects(open('relay', { ...args, url: target.url }, { GATEHOUSE_TUNNEL_AUTH_TOKEN: 'x' }), {
    message: /HTTP 200/,
  })
})

await t.test('relay: a name is free again after its client has gone', async (t) => {
  const relay = await startRelay({
    host: '127.0.0.1',
    port: 0,
    domain: 'tunnels.test',
    authToken: () => new Secret('t0ken'),
    log: silentLog,
    freeAfterMs: 1,
  })
  t.teardown(() => relay.close({ graceMs: 0 }))
  const args = { url: `http://127.0.0.1:${relay.port}`, hostname: 'demo' }
  const env = { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't0ken' }
  await (await open('relay', args, env)).proxy.close({ graceMs: 0 })
  for (let tunnels = 1; tunnels > 0; ) {
    const health: unknown = await (await fetch(`${relay.url}/health`)).json()
    tunnels =
      typeof health === 'object' && health !== null && 'tunnels' in health ? Number(health.tunnels) : 1
  }
  const second = await open('relay', args, env)
  t.equal(second.urls.length, 1)
  await second.proxy.close({ graceMs: 0 })
})

await t.test(
  'tunnel: incoming authentication protects it, and its document contains the public URL',
  async (t) => {
    const idp = await startLoopback(({ form }) => ({
      body:
        form.get('token') === 'good'
          ? { active: true, sub: 'a', aud: 'me', exp: 4_102_444_800 }
          : { active: false },
    }))
    const relay = await startRelay({
      host: '127.0.0.1',
      port: 0,
      domain: 'tunnels.test',
      publicUrl: 'https://*.tunnels.test',
      authToken: () => new Secret('t'),
      log: silentLog,
    })
    const opened = await open(
      'relay',
      { url: `http://127.0.0.1:${relay.port}`, hostname: 'demo' },
      { GATEHOUSE_TUNNEL_AUTH_TOKEN: 't' },
      { oidcIntrospectionUrl: `${idp.url}/i`, oidcAudience: 'me' },
    )
    t.teardown(async () => {
      await opened.proxy.close({ graceMs: 0 })
      await relay.close({ graceMs: 0 })
      await idp.close()
    })
    const ask = (...lines: string[]): Promise<string> =>
      rawRequest(relay.port, [lines[0] ?? '', 'Host: demo.tunnels.test', ...lines.slice(1)])
    const refused = await ask('GET /mcp HTTP/1.1')
    t.match(refused, /^HTTP\/1\.1 401 /)
    t.match(refused, 'resource_metadata="https://demo.tunnels.test/.well-known/oauth-protected-resource/mcp"')
    t.match(await ask('GET /mcp HTTP/1.1', 'Authorization: Bearer good'), /^HTTP\/1\.1 200 [\s\S]*nobody/)
    t.match(
      await ask('GET /.well-known/oauth-protected-resource HTTP/1.1'),
      '"resource":"https://demo.tunnels.test/mcp"',
    )
  },
)

await t.test(
  'exec: the program gets the address and the token in a variable, and is restarted',
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'tunnel-'))
    const script = join(dir, 'fake-tunnel.mjs')
    writeFileSync(
      script,
      `import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
     const first = !existsSync('${dir}/ran')
     appendFileSync('${dir}/ran', JSON.stringify([process.argv.slice(2), process.env.FAKE_TOKEN, process.env.GATEHOUSE_TUNNEL_AUTH_TOKEN ?? null]) + '\\n')
     console.log('noise https://not-this.example')
     console.log('forwarding url=https://' + (first ? 'one' : 'two') + '.tunnel.example')
     if (first) setTimeout(() => process.exit(3), 50)
     else setInterval(() => {}, 1000)`,
    )
    const urls = Promise.withResolvers<void>()
    const seen: string[] = []
    const config = resolveProxyConfig('demo', { targetUri: target.url }, {})
    const proxy = await runTunnel({
      config,
      provider: makeTunnelProvider(
        'exec',
        JSON.stringify({
          command: [process.execPath, script, '{target}', '--port={port}', '$(echo no shell)'],
          'url-pattern': 'url=(https://\\S+)',
          'auth-token-env': 'FAKE_TOKEN',
        }),
        { env: { ...process.env, GATEHOUSE_TUNNEL_AUTH_TOKEN: 's3cret' }, ca: undefined, proxy: undefined },
      ),
      insecureUnauthenticated: true,
      onUrl(url) {
        seen.push(url)
        if (seen.length === 2) urls.resolve()
      },
      log: silentLog,
      notify() {},
    })
    await urls.promise
    t.same(seen, ['https://one.tunnel.example', 'https://two.tunnel.example'])
    const [args, token, own] = JSON.parse(readFileSync(join(dir, 'ran'), 'utf8').split('\n')[0] ?? '[]')
    t.same(args, [`http://127.0.0.1:${proxy.port}`, `--port=${proxy.port}`, '$(echo no shell)'])
    t.equal(token, 's3cret')
    t.equal(own, null)
    for (const host of ['one.tunnel.example', 'two.tunnel.example']) {
      t.match(await rawRequest(proxy.port, ['GET /mcp HTTP/1.1', `Host: ${host}`]), /^HTTP\/1\.1 200 /, host)
    }
    t.match(
      await rawRequest(proxy.port, ['GET /mcp HTTP/1.1', 'Host: three.tunnel.example']),
      /^HTTP\/1\.1 403 /,
    )
    await proxy.close({ graceMs: 0 })
  },
)

await t.test('exec: a program that cannot start is an immediate error', async (t) => {
  await t.rejects(open('exec', { command: ['/no/such/program', '{target}'] }), { code: 'INVALID_CONFIG' })
  const file = join(mkdtempSync(join(tmpdir(), 'tunnel-')), 'broken')
  writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o755 })
  await t.rejects(open('exec', { command: [file, '{target}'] }), { message: /the command was not found/ })
  await t.rejects(open('exec', { command: ['/bin/sh', '-c', 'exit 3', '{target}'] }), {
    message: /exited with code 3/,
  })
})

const sshd = '/usr/sbin/sshd'

/** An sshd that runs as root requires an empty directory. */
function canRunSshd(): boolean {
  if (!existsSync(sshd)) return false
  if (process.getuid?.() !== 0) return true
  try {
    mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
    return true
  } catch {
    return false
  }
}

await t.test(
  'ssh: a reverse forward through a real server works',
  { skip: !canRunSshd() && 'no sshd here' },
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sshd-'))
    for (const name of ['host', 'user']) {
      spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(dir, name)])
    }
    writeFileSync(join(dir, 'authorized'), readFileSync(join(dir, 'user.pub')), { mode: 0o600 })
    chmodSync(dir, 0o700)
    const port = await freePort()
    const remotePort = await freePort()
    writeFileSync(
      join(dir, 'config'),
      `ListenAddress 127.0.0.1:${port}\nHostKey ${dir}/host\nAuthorizedKeysFile ${dir}/authorized\nPidFile none\n` +
        'UsePAM no\nPasswordAuthentication no\nStrictModes no\nAllowTcpForwarding yes\n',
    )
    const server = spawn(sshd, ['-D', '-e', '-f', join(dir, 'config')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.teardown(async () => {
      if (server.exitCode !== null) return
      server.kill()
      await once(server, 'exit')
    })
    await once(server.stderr, 'data')
    // The client's ordinary configuration names a known_hosts file with the server's key.
    const config = join(dir, 'client')
    writeFileSync(join(dir, 'known'), `[127.0.0.1]:${port} ${readFileSync(join(dir, 'host.pub'), 'utf8')}`)
    writeFileSync(config, `UserKnownHostsFile ${dir}/known\n`)
    const bin = join(dir, 'ssh')
    writeFileSync(bin, `#!/bin/sh\nexec /usr/bin/ssh -F ${config} "$@"\n`, { mode: 0o755 })
    const args = {
      host: '127.0.0.1',
      port,
      user: userInfo().username,
      'identity-file': join(dir, 'user'),
      'remote-bind': String(remotePort),
    }
    const env = { ...process.env, PATH: `${dir}:${process.env['PATH']}` }
    const opened = await open('ssh', args, env)
    t.same(opened.urls, [`http://127.0.0.1:${remotePort}`])
    const response = await fetch(`http://127.0.0.1:${remotePort}/mcp`, {
      method: 'POST',
      headers: json,
      body: rpc(1),
    })
    t.match(await response.text(), /^POST \/mcp/)
    await opened.proxy.close({ graceMs: 0 })
    await t.rejects(fetch(`http://127.0.0.1:${remotePort}/mcp`))

    const chosen = await open('ssh', { ...args, 'remote-bind': '0' }, env)
    t.match(chosen.urls[0], /^http:\/\/127\.0\.0\.1:\d+$/)
    t.equal((await fetch(`${chosen.urls[0]}/mcp`)).status, 200)
    await chosen.proxy.close({ graceMs: 0 })
    await t.rejects(open('ssh', { ...args, 'identity-file': join(dir, 'host') }, env), {
      message: /exited with code 255: .*Permission denied/,
    })
  },
)

await t.test('tunnel: all settings are checked together, and --dry-run opens nothing', async (t) => {
  const base = ['proxy', 'tunnel', target.url, 'demo', '--insecure-unauthenticated']
  const cases: readonly [string[], RegExp][] = [
    [['--tunnel-provider', 'ngrok'], /--tunnel-provider: must be one of ssh, relay, exec/],
    [['--tunnel-provider', 'ssh', '--provider-args', '[]'], /--provider-args: must be a JSON object/],
    [
      ['--tunnel-provider', 'ssh', '--provider-args', '{"hst":"x","port":"22"}'],
      /host: is required[\s\S]*port: must be a whole number[\s\S]*hst: is unknown; did you mean host\?/,
    ],
    [
      ['--tunnel-provider', 'ssh', '--provider-args', '{"host":"-oProxyCommand=x"}'],
      /host: must be a host name/,
    ],
    [
      ['--tunnel-provider', 'relay', '--provider-args', '{"url":"ftp://x"}'],
      /url: must be an absolute URL[\s\S]*auth-token-file: is required/,
    ],
    [['--tunnel-provider', 'exec', '--provider-args', '{"command":"ngrok http"}'], /command: must be a list/],
    [
      ['--tunnel-provider', 'exec', '--provider-args', '{"command":["/no/such"]}'],
      /must contain \{target\}[\s\S]*the program \/no\/such was not found/,
    ],
    [
      ['--tunnel-provider', 'relay', '--provider-args', '{"url":"ws://relay.example"}'],
      /url: must begin with wss:\/\/ or https:\/\//,
    ],
    [
      [
        '--tunnel-provider',
        'ssh',
        '--provider-args',
        '{"host":"h","identity-file":"/no/key","remote-bind":"99999"}',
      ],
      /at most 65535[\s\S]*identity-file: cannot read the file \/no\/key/,
    ],
    [
      ['--tunnel-provider', 'exec', '--provider-args', '{"command":["x"],"url-pattern":"("}'],
      /url-pattern: must be a regular expression/,
    ],
  ]
  for (const [args, expected] of cases) {
    const { code, stderr } = await runGatehouse([...base, ...args, '--dry-run'])
    t.equal(code, 2, args.join(' '))
    t.match(stderr, expected)
  }
  const dry = await runGatehouse([
    ...base,
    '--dry-run',
    '--tunnel-provider',
    'exec',
    '--provider-args',
    '{"command":["false","{target}"]}',
  ])
  t.equal(dry.code, 0)
  t.match(dry.stderr, /The tunnel was not opened/)
  t.equal(dry.stdout, '')
  const exposed = [
    'proxy',
    'tunnel',
    target.url,
    'demo',
    '--tunnel-provider',
    'exec',
    '--provider-args',
    '{"command":["true","{target}"]}',
  ]
  for (const args of [exposed, [...exposed, '--dry-run']]) {
    const open = await runGatehouse(args)
    t.equal(open.code, 2)
    t.match(open.stderr, /--insecure-unauthenticated/)
  }
})
