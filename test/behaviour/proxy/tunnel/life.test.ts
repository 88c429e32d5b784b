/** The life of a tunnel: the environment of its program, its end, another URL after a restart, and the command. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { makeTunnelProvider, runTunnel } from '../../../../runtime/proxy/index.ts'
import { isAlive, program, startGatehouse } from '../../../helpers/gatehouse.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { proves } from '../../../helpers/proves.ts'
import { rawRequest, startUpstream } from '../../../helpers/proxy/rig.ts'

proves('1.command.tunnel')

const target = await startUpstream((_seen, res) => res.end('hello'))
t.teardown(() => target.close())
const dir = mkdtempSync(join(tmpdir(), 'tunnel-life-'))
let scripts = 0

/** A short tunnel program, which can use `dir`. */
function script(source: string): readonly string[] {
  const path = join(dir, `program-${++scripts}.mjs`)
  writeFileSync(
    path,
    `import fs from 'node:fs'; import { spawn } from 'node:child_process'; const dir = '${dir}'; ${source}`,
  )
  return [process.execPath, path, '{target}']
}

interface Options {
  readonly env?: Record<string, string | undefined>
  readonly input?: ProxyInput
  readonly onUrl?: (url: string) => void
  readonly signal?: AbortSignal
  readonly upWithinMs?: number
}

function open(command: readonly string[], { env = {}, input = {}, ...more }: Options = {}) {
  return runTunnel({
    config: resolveProxyConfig('demo', { targetUri: target.url, ...input }, {}),
    provider: makeTunnelProvider('exec', JSON.stringify({ command, 'url-pattern': 'url=(\\S+)' }), {
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
      ca: undefined,
      proxy: undefined,
    }),
    insecureUnauthenticated: input.oidcIntrospectionUrl === undefined,
    onUrl: () => {},
    log: silentLog,
    notify() {},
    ...more,
  })
}

await t.test(
  "program: it gets none of the gateway's variables, and its child processes end with it",
  async (t) => {
    const command = script(`
    fs.writeFileSync(dir + '/env', JSON.stringify(process.env))
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
    fs.writeFileSync(dir + '/pid', String(child.pid))
    console.error('the address is url=https://one.example')
    setInterval(() => {}, 1000)`)
    const proxy = await open(command, {
      env: { GATEHOUSE_REMOTE_AUTH_BEARER_TOKEN: 's3cret', GATEHOUSE_SECRET_X: 's3cret', OTHER: 'alive' },
    })
    t.notMatch(readFileSync(join(dir, 'env'), 'utf8'), 's3cret')
    t.match(readFileSync(join(dir, 'env'), 'utf8'), '"OTHER":"alive"')
    const pid = Number(readFileSync(join(dir, 'pid'), 'utf8'))
    t.ok(isAlive(pid))
    await proxy.close({ graceMs: 0 })
    while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve))
    t.pass('gone')
  },
)

await t.test('program: a missing URL is an error, and a stop cancels the wait', async (t) => {
  const silent = script(`fs.writeFileSync(dir + '/silent', String(process.pid)); setInterval(() => {}, 1000)`)
  await t.rejects(open(silent, { upWithinMs: 400 }), { message: /was not ready within 0.4s/ })
  const stop = new AbortController()
  const opening = open(silent, { signal: stop.signal })
  stop.abort()
  await t.rejects(opening, { message: /stopped while/ })
  t.notOk(existsSync(join(dir, 'silent')) && isAlive(Number(readFileSync(join(dir, 'silent'), 'utf8'))))
})

await t.test('url: another URL after a restart becomes the resource', async (t) => {
  const idp = await startLoopback(() => ({ body: { active: false } }))
  t.teardown(() => idp.close())
  const command = script(`
    const first = !fs.existsSync(dir + '/restarted')
    fs.writeFileSync(dir + '/restarted', '')
    console.log('url=https://' + (first ? 'one' : 'two') + '.example')
    if (first) setTimeout(() => process.exit(1), 20)
    else setInterval(() => {}, 1000)`)
  const second = Promise.withResolvers<void>()
  const urls: string[] = []
  const proxy = await open(command, {
    input: { oidcIntrospectionUrl: `${idp.url}/i`, oidcAudience: 'me' },
    onUrl(url) {
      if (urls.push(url) === 2) second.resolve()
    },
  })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  await second.promise
  t.same(urls, ['https://one.example', 'https://two.example'])
  const ask = (path: string): Promise<string> =>
    rawRequest(proxy.port, [`GET ${path} HTTP/1.1`, 'Host: two.example'])
  t.match(
    await ask('/mcp'),
    'resource_metadata="https://two.example/.well-known/oauth-protected-resource/mcp"',
  )
  t.match(await ask('/.well-known/oauth-protected-resource/mcp'), '"resource":"https://two.example/mcp"')
})

await t.test('url: --resource-url stays in effect', async (t) => {
  const idp = await startLoopback(() => ({ body: { active: false } }))
  t.teardown(() => idp.close())
  const command = script(`console.log('url=https://one.example'); setInterval(() => {}, 1000)`)
  const proxy = await open(command, {
    input: {
      oidcIntrospectionUrl: `${idp.url}/i`,
      oidcAudience: 'me',
      resourceUrl: 'https://fixed.example/mcp',
    },
  })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  t.match(
    await rawRequest(proxy.port, ['GET /.well-known/oauth-protected-resource HTTP/1.1', 'Host: one.example']),
    '"resource":"https://fixed.example/mcp"',
  )
})

await t.test(
  'command: standard output contains only the URL, and a signal ends it and its program',
  async (t) => {
    const command = script(`
    fs.writeFileSync(dir + '/command', String(process.pid))
    console.log('url=https://demo.example/')
    setInterval(() => {}, 1000)`)
    const args = [
      'proxy',
      'tunnel',
      target.url,
      'demo',
      '--insecure-unauthenticated',
      '--tunnel-provider',
      'exec',
    ]
    const settings = JSON.stringify({ command, 'url-pattern': 'url=(\\S+)' })
    const child = spawn(process.execPath, [program, ...args, '--provider-args', settings], {
      stdio: 'pipe',
    })
    child.stderr.resume()
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    await once(child.stdout, 'data')
    const pid = Number(readFileSync(join(dir, 'command'), 'utf8'))
    t.ok(isAlive(pid))
    child.kill('SIGTERM')
    const [code] = await once(child, 'close')
    t.equal(code, 0)
    t.equal(stdout, 'https://demo.example\n')
    t.notOk(isAlive(pid))
  },
)

await t.test('command: relay and tunnel work as two programs', async (t) => {
  const token = join(dir, 'token')
  writeFileSync(token, 'too-short\n')
  const refused = startGatehouse([
    'relay',
    '--domain',
    'tunnels.test',
    '--auth-token-file',
    token,
    '--port',
    '0',
  ])
  await t.rejects(refused.waitFor(/Relay started/), /at least 16 characters/)
  t.equal(refused.child.exitCode, 2)
  writeFileSync(token, 'a-token-that-is-long-enough\n')
  const relay = startGatehouse([
    'relay',
    '--domain',
    'tunnels.test',
    '--auth-token-file',
    token,
    '--port',
    '0',
  ])
  const [, port] = await relay.waitFor(/Relay started on port (\d+)/)
  const tunnel = startGatehouse([
    'proxy',
    'tunnel',
    target.url,
    'demo',
    '--insecure-unauthenticated',
    '--tunnel-provider',
    'relay',
    '--provider-args',
    JSON.stringify({ url: `ws://127.0.0.1:${port}`, hostname: 'demo', 'auth-token-file': token }),
  ])
  await tunnel.waitFor(new RegExp(`^http://demo\\.tunnels\\.test:${port}$`, 'm'))
  t.match(await rawRequest(Number(port), ['GET /mcp HTTP/1.1', 'Host: demo.tunnels.test']), /hello/)
  t.equal(await tunnel.interrupt(), 0)
  t.equal(await relay.interrupt(), 0)
  t.notMatch(relay.output() + tunnel.output(), 'long-enough', 'no log contains the token')
})
