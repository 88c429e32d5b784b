/** `gatehouse proxy` as a process: output, exit codes, signals, help. */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { proxyFlags, variables } from '../../../runtime/config/index.ts'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { type Loopback, startLoopback } from '../../helpers/loopback.ts'
import { startOidcProvider, walk } from '../../helpers/authserver/oidc-provider.ts'
import { proves } from '../../helpers/proves.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

proves(
  '1.command.proxy',
  '1.command.server-name',
  '1.does.no-workload',
  '1.flag.port',
  '1.flag.debug',
  '1.flag.help',
)

const target = await startUpstream((_seen, res) => res.end('hello'))
t.teardown(() => target.close())
const started = /^Transparent proxy started for server (\S+) on port (\d+) -> (\S+)$/m

await t.test(
  'command: it prints one line on standard output, serves, and exits with 0 on a signal',
  async (t) => {
    const run = startGatehouse(['proxy', '--target-uri', `${target.url}/?key=s3cret`, 'demo'])
    const [, name, port, uri] = await run.waitFor(started)
    t.equal(name, 'demo')
    t.equal(uri, `${target.url}/`, 'without the query')
    t.equal(await (await fetch(`http://127.0.0.1:${port}/mcp`)).text(), 'hello')
    t.equal(await run.interrupt(), 0)
    const lines = run
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
    t.ok(lines.length >= 2)
    for (const line of lines)
      t.match(JSON.parse(line), { level: String, time: /^\d{4}-.*Z$/, name: 'proxy', message: String })
    t.match(run.output(), /every client that reaches this port may use the proxy/)
    t.match(run.output(), /"message":"request".*"path":"\/mcp"|"path":"\/mcp".*"message":"request"/)
    t.notMatch(run.output(), /s3cret/)
  },
)

await t.test('command: an open event stream does not delay the exit', async (t) => {
  const streaming = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: 1\n\n')
  })
  t.teardown(() => streaming.close())
  const run = startGatehouse(['proxy', '--target-uri', streaming.url, 'demo'])
  const [, , port] = await run.waitFor(started)
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, { headers: { accept: 'text/event-stream' } })
  const ended = response.text()
  t.equal(await run.interrupt(), 0)
  t.equal(await ended, 'data: 1\n\n')
})

await t.test('command: invalid usage or configuration exits with 2 before anything is opened', async (t) => {
  const cases: readonly [string[], RegExp][] = [
    [['proxy'], /missing required argument 'SERVER_NAME'/],
    [['proxy', 'demo'], /--target-uri: is required/],
    [['proxy', '--target-uri', target.url, 'a', 'b'], /too many arguments/],
    [['proxy', '--target-uri', target.url, '--nonsense', 'a'], /unknown option '--nonsense'/],
    [['proxy', '--target-uri', `${target.url}/mcp`, 'a'], /must not have a path/],
    [
      ['proxy', '--target-uri', target.url, '--host', 'no.such.host.invalid', 'a'],
      /invalid host: no\.such\.host\.invalid/,
    ],
    [['proxy', '--target-uri', target.url, '--oidc-audience', 'x', 'a'], /--oidc-audience: requires/],
  ]
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await runGatehouse(args)
    t.equal(code, 2, args.join(' '))
    t.equal(stdout, '')
    t.match(stderr, expected)
    t.notMatch(stderr, /\n\s+at |\.ts:/, 'no stack')
  }
})

await t.test(
  'command: an address that cannot be bound exits with 1, and the error names the flags',
  async (t) => {
    const run = (...flags: string[]) => runGatehouse(['proxy', '--target-uri', target.url, ...flags, 'a'])
    const taken = `Error: failed to start proxy: --port: ${target.port} on 127.0.0.1 is in use by another program\n`
    for (const more of [[], ['--workers', '2']]) {
      const { code, stderr } = await run('--port', String(target.port), ...more)
      t.equal(code, 1)
      t.ok(stderr.endsWith(taken), 'after the warnings')
      t.equal(stderr.split('Error:').length, 2, 'reported once')
    }
    // No machine has this address, because it is reserved for documentation.
    const foreign = await run('--host', '203.0.113.7')
    t.equal(foreign.code, 1)
    t.match(
      foreign.stderr,
      'Error: failed to start proxy: --host: 203.0.113.7 is not an address of this machine',
    )
  },
)

await t.test('command: help shows every flag with its default', async (t) => {
  const { code, stdout } = await runGatehouse(['proxy', '--help'])
  t.equal(code, 0)
  // Long texts are wrapped to the terminal's width.
  const text = stdout.replace(/\s+/g, ' ')
  for (const row of Object.values(proxyFlags)) {
    t.match(stdout, row.flag)
    if ('default' in row) t.match(text, `(default: ${row.default})`)
  }
  for (const { name } of Object.values(variables)) t.match(stdout, name)
  t.match(stdout, '-h, --help')
  t.match(stdout, /Exit codes: 0 .* 3 the login failed/)
  t.equal((await runGatehouse(['proxy', '-h'])).stdout, stdout)
})

await t.test('command: --debug logs more, before or after the name of the command', async (t) => {
  for (const args of [
    ['--debug', 'proxy', '--target-uri', target.url, 'demo'],
    ['proxy', '--target-uri', target.url, 'demo', '--debug'],
  ]) {
    const run = startGatehouse(args)
    const [, , port] = await run.waitFor(started)
    await fetch(`http://127.0.0.1:${port}/mcp?code=s3cret`, { method: 'POST', headers: json, body: rpc(1) })
    await run.waitFor(/"level":"debug"/)
    t.equal(await run.interrupt(), 0)
    t.notMatch(run.output(), /s3cret/)
  }
})

await t.test('command: a login completes, and a failed login exits with 3', async (t) => {
  const idp = await startOidcProvider({ resources: { [target.url]: {} } })
  t.teardown(() => idp.close())
  const args = [
    'proxy',
    '--target-uri',
    target.url,
    '--remote-auth',
    '--remote-auth-issuer',
    idp.issuer,
    '--remote-auth-skip-browser',
    '--remote-auth-callback-port',
    '0',
    '--remote-auth-ephemeral',
  ]
  const run = startGatehouse([...args, 'demo'])
  const [, url = ''] = await run.waitFor(/Please open this URL in your browser: (\S+)\n/)
  t.notMatch(run.output(), started, 'not started before the login')
  await fetch(await walk(url, 'http://localhost:'))
  const [, , port] = await run.waitFor(started)
  await fetch(`http://127.0.0.1:${port}/mcp`)
  t.match(target.seen.at(-1)?.headers.authorization, /^Bearer eyJ/)
  t.equal(await run.interrupt(), 0)
  t.notMatch(run.output(), /eyJ/, 'no token in any output')

  const late = await runGatehouse([...args, '--remote-auth-timeout', '100ms', 'demo'])
  t.equal(late.code, 3)
  t.match(late.stderr, /Error: failed to authenticate to remote server: .*--remote-auth-timeout/)
  t.equal(late.stdout, '')

  const stopped = startGatehouse([...args, 'demo'])
  await stopped.waitFor(/Waiting for OAuth callback/)
  t.equal(await stopped.interrupt(), 130, 'a signal during the login')
  for (const line of [
    [...args, 'demo'],
    ['proxy', 'stdio', ...args.slice(3), `${target.url}/mcp`],
  ]) {
    const ended = startGatehouse(line)
    await ended.waitFor(/Waiting for OAuth callback/)
    const exited = once(ended.child, 'exit')
    ended.child.kill('SIGTERM')
    const [code]: unknown[] = await exited
    t.equal(code, 143, line.slice(0, 2).join(' '))
  }
})

await t.test('command: the error text of the authorization server is printed', async (t) => {
  const idp: Loopback = await startLoopback(({ path }) =>
    path === '/reg'
      ? {
          status: 400,
          body: { error: 'invalid_redirect_uri', error_description: 'Policy 7\u001b[31m forbids it' },
        }
      : {
          body: {
            issuer: idp.url,
            authorization_endpoint: `${idp.url}/auth`,
            token_endpoint: `${idp.url}/token`,
            registration_endpoint: `${idp.url}/reg`,
            code_challenge_methods_supported: ['S256'],
          },
        },
  )
  t.teardown(() => idp.close())
  const { code, stderr } = await runGatehouse([
    ...['proxy', '--target-uri', target.url, '--remote-auth', '--remote-auth-issuer', idp.url],
    ...['--remote-auth-skip-browser', '--remote-auth-callback-port', '0', '--remote-auth-ephemeral', 'demo'],
  ])
  t.equal(code, 3)
  t.match(
    stderr,
    /refused the request: invalid_redirect_uri\nMessage from the authorization server: Policy 7 \[31m forbids it\n/,
  )
})

await t.test('command: the browser is opened without a shell', async (t) => {
  proves('1.flag.remote-auth-skip-browser')
  const idp = await startOidcProvider({ resources: { [target.url]: {} } })
  t.teardown(() => idp.close())
  const dir = mkdtempSync(join(tmpdir(), 'browser-'))
  const browser = join(dir, 'browser with blanks')
  writeFileSync(browser, `#!/bin/sh\nprintf '%s' "$1" > '${dir}/opened'\n`, { mode: 0o755 })
  const run = startGatehouse(
    [
      'proxy',
      '--target-uri',
      target.url,
      '--remote-auth',
      '--remote-auth-issuer',
      idp.issuer,
      '--remote-auth-callback-port',
      '0',
      '--remote-auth-ephemeral',
      'demo',
    ],
    { ...process.env, BROWSER: browser },
  )
  const [, url = ''] = await run.waitFor(/Opening browser: (\S+)\n[\s\S]*Waiting for OAuth callback/)
  const { readFileSync } = await import('node:fs')
  t.equal(readFileSync(join(dir, 'opened'), 'utf8'), url)
  t.notMatch(run.output(), /manually/)
  await run.interrupt()
})
