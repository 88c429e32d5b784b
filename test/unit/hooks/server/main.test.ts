/** The command as a process: flags, environment, certificate reload, and exit on a signal. */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connect as tlsConnect } from 'node:tls'
import t, { type Test } from 'tap'
import { issueCertificate } from '../../../../hooks/certificates/issue.ts'
import { hooksProgram } from '../../../helpers/gatehouse.ts'
import { makeCertificates } from '../../../helpers/redis.ts'
import { secret, testSettings, World } from '../../../hooks/world.ts'
import { virtual, group } from '../../../hooks/resources.ts'

interface Running {
  child: ChildProcess
  port: number
  line(pattern: RegExp): Promise<string>
  stop(): Promise<number | null>
}

async function start(t: Test, args: string[], env: Record<string, string> = {}): Promise<Running> {
  const child = spawn(process.execPath, [hooksProgram, '--port', '0', ...args], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const lines: string[] = []
  const waiting = new Set<() => void>()
  function wakeAll(): void {
    for (const wake of waiting) wake()
    waiting.clear()
  }
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line)
    wakeAll()
  })
  child.once('exit', wakeAll)
  const line = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const found = lines.find((text) => pattern.test(text))
      if (found !== undefined) return found
      if (child.exitCode !== null) throw new Error(`ended: ${lines.join('\n')}`)
      await new Promise<void>((resolve) => {
        waiting.add(resolve)
      })
    }
  }
  const { port } = JSON.parse(await line(/"listening"/)) as { port: number }
  return {
    child,
    port,
    line,
    async stop() {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      return ((await gone) as [number | null])[0]
    },
  }
}

async function run(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [hooksProgram, ...args], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => (text += data.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

/** Creates a certificate that is identified by its common name. */
async function certificate(name: string): Promise<{ cert: string; key: string }> {
  const { certificate: cert, key } = await issueCertificate({
    names: [name],
    now: new Date(),
    lifetimeMs: 3_600_000,
  })
  return { cert, key }
}

/** Creates a client certificate and the authority that signed it. */
function clientCertificate(t: Test): { cert: string; key: string; ca: string } {
  const { certFile, keyFile, ca, remove } = makeCertificates()
  t.teardown(remove)
  return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8'), ca }
}

/** Returns the status of one request over TLS on its own connection, without reading the body. */
const statusOf = (options: object): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', rejectUnauthorized: false, agent: false, ...options },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    call.on('error', reject)
    call.end()
  })

const servedName = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', reject)
  })

t.test(
  'gatehouse-hooks: runs with the settings of its environment and exits with code 0 on SIGTERM',
  async (t) => {
    const running = await start(t, [], {
      GATEHOUSE_RUNTIME_IMAGE: 'registry.example/own:9',
      GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS: 'pull, other',
      GATEHOUSE_DEFAULT_REDIS_ADDR: 'redis:6379',
      GATEHOUSE_DEFAULT_REDIS_SECRET_NAME: 'redis',
      GATEHOUSE_OPENSHIFT: 'true',
      GATEHOUSE_CLUSTER_DOMAIN: 'corp.internal',
    })
    const settings = { ...testSettings, defaultRedis: { address: 'redis:6379', secretName: 'redis' } }
    const body = new World(settings)
      .apply(group, virtual(), secret('redis', { 'redis-password': 'p' }))
      .settle()
      .request('VirtualMCPServer', 'door')
    const response = await fetch(`http://127.0.0.1:${running.port}/hooks/virtualmcpservers/sync`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    const text = await response.text()
    for (const part of ['registry.example/own:9', '"name":"pull"', 'redis:6379', '.svc.corp.internal:4483'])
      t.ok(text.includes(part), part)
    t.notOk(text.includes('runAsUser'), 'the platform gives the ids')
    t.equal(await running.stop(), 0)
  },
)

t.test('gatehouse-hooks: invalid names of pull secrets are rejected', async (t) => {
  const ended = await run(['--port', '0'], { GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS: 'pull;other' })
  t.match(ended, { code: 2, text: /GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS: .*pull;other/ })
})

t.test('gatehouse-hooks: a new certificate is used without a restart, an invalid one is not', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hooks-tls-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const put = (pair: { cert: string; key: string }) => {
    for (const kind of ['cert', 'key'] as const) {
      writeFileSync(`${files[kind]}.new`, pair[kind])
      renameSync(`${files[kind]}.new`, files[kind])
    }
  }
  put(await certificate('first'))
  const running = await start(t, ['--tls-cert-file', files.cert, '--tls-key-file', files.key])
  t.equal(await servedName(running.port), 'first')
  put(await certificate('second'))
  await running.line(/reloaded/)
  t.equal(await servedName(running.port), 'second')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(files.key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await running.line(/certificate is invalid/)
  t.equal(await servedName(running.port), 'second')
  const status = await statusOf({ port: running.port, path: '/healthz' })
  t.equal(status, 200)
  t.equal(await running.stop(), 0)
})

t.test('gatehouse-hooks: two ports, one with a client certificate and one with a token', async (t) => {
  const folder = t.testdir({ token: 'old\nnew\n' })
  const served = await certificate('served')
  const [client, other] = [clientCertificate(t), clientCertificate(t)]
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text)
  put('tls.crt', served.cert)
  put('tls.key', served.key)
  put('ca.crt', client.ca)
  const file = (name: string) => join(folder, name)
  const running = await start(t, [
    ...['--hooks-port', '0', '--token-file', file('token'), '--client-ca-file', file('ca.crt')],
    ...['--tls-cert-file', file('tls.crt'), '--tls-key-file', file('tls.key')],
  ])
  const { hooks_port: hooksPort } = JSON.parse(await running.line(/"listening"/)) as { hooks_port: number }
  const status = (port: number, path: string, more: object = {}) =>
    statusOf({ port, path, method: path.startsWith('/healthz') ? 'GET' : 'POST', ...more })
  const own = { cert: client.cert, key: client.key }

  t.equal(await status(running.port, '/healthz'), 200, 'a probe has no certificate')
  t.equal(await status(running.port, '/validate'), 401, 'no certificate')
  t.equal(
    await status(running.port, '/validate', { cert: other.cert, key: other.key }),
    401,
    'signed by another authority',
  )
  t.equal(await status(running.port, '/validate', own), 400, 'accepted, and the empty body is rejected')
  t.equal(await status(running.port, '/hooks/mcpgroups/sync', own), 404, 'not on this port')

  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync'), 401, 'no token')
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync', bearer('old')), 400, 'the first')
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync', bearer('new')), 400, 'the second')
  put('token', 'new\n')
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync', bearer('old')), 401, 'removed from the file')
  t.equal(await status(hooksPort, '/validate', own), 404, 'not on this port')
  rmSync(file('token'))
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync', bearer('new')), 401, 'the file was deleted')
  await running.line(/"level":"error".*--token-file is unreadable or empty/)
  put('token', 'new')
  t.equal(await status(hooksPort, '/hooks/mcpgroups/sync', bearer('new')), 400, 'and back')

  put('ca.crt', other.ca)
  await running.line(/reloaded/)
  t.equal(
    await status(running.port, '/validate', { cert: other.cert, key: other.key }),
    400,
    'the new authority',
  )
  t.equal(await status(running.port, '/validate', own), 401, 'the old authority')
  t.equal(await running.stop(), 0)
})

t.test('gatehouse-hooks: invalid usage exits with code 2 and names the problem', async (t) => {
  const wrong: [string[], Record<string, string>, RegExp][] = [
    [['--port', 'x'], {}, /0 to 65535/],
    [['--tls-cert-file', 'a'], {}, /together/],
    [['--client-ca-file', 'a'], {}, /--client-ca-file requires --tls-cert-file and --tls-key-file/],
    [['--hooks-port', '65536'], {}, /0 to 65535/],
    [['--token-file', '/dev/null'], {}, /--token-file is empty/],
    [['--nope'], {}, /unknown option/],
    [['serve'], {}, /unknown command|too many arguments/],
    [[], { GATEHOUSE_DEFAULT_REDIS_SECRET_NAME: 'x' }, /GATEHOUSE_DEFAULT_REDIS_ADDR/],
    [[], { GATEHOUSE_ENABLE_OBO: 'enabled' }, /GATEHOUSE_ENABLE_OBO: must be true or false/],
    [[], { GATEHOUSE_OPENSHIFT: 'y' }, /GATEHOUSE_OPENSHIFT: must be true or false/],
  ]
  for (const [args, env, text] of wrong) {
    const ran = await run(args, env)
    t.equal(ran.code, 2, args.join(' '))
    t.match(ran.text, text)
  }
  const help = await run(['--help'])
  t.equal(help.code, 0)
  t.match(help.text, /GATEHOUSE_ENABLE_OBO/)
})

t.test(
  'shutdown: connections that stay open after their response do not use up the grace period',
  async (t) => {
    const running = await start(t, ['--shutdown-grace', '3600'])
    const agent = new Agent({ keepAlive: true })
    t.teardown(() => agent.destroy())
    const unused = connect(running.port, '127.0.0.1')
    t.teardown(() => unused.destroy())
    await once(unused, 'connect')
    const sent = httpRequest({
      port: running.port,
      host: '127.0.0.1',
      path: '/validate',
      method: 'POST',
      agent,
    })
    sent.write('{"kind":"AdmissionReview","request":{"uid":"u","operation":"CONNECT"')
    const gone = once(running.child, 'exit')
    await once(sent, 'socket')
    // A response to this later request shows that the server has received the first one.
    await once(httpRequest({ port: running.port, host: '127.0.0.1', path: '/healthz' }).end(), 'response')
    running.child.kill('SIGTERM')
    await running.line(/"shutting down"/)
    const answered = once(sent, 'response')
    sent.end('}}')
    const [{ statusCode }] = await answered
    t.equal(statusCode, 200, 'a request in flight is answered')
    t.strictSame(await gone, [0, null])
  },
)
