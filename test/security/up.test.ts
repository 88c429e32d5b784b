/** Attacks on `gatehouse up`: other users of the machine, web pages, stolen files, changed files, kills and races. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ParkJournal } from '../../runtime/toolkit/client-files/park-journal.ts'
import { parkServers } from '../../runtime/toolkit/client-files/park.ts'
import { startByPs } from '../../runtime/tools/up/instance/instance.ts'
import { connectThroughEntry, makeUpHome, secret, type UpHome } from '../helpers/up/up-home.ts'

t.setTimeout(900_000)

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
})

/** Returns the loopback ports on which a process listens, from /proc. */
function listeningPorts(pid: number): readonly number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    }),
  )
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/)
    const [address = '', port = ''] = (fields[1] ?? '').split(':')
    const isOurs = fields[3] === '0A' && sockets.has(fields[9] ?? '')
    return isOurs && address === '0100007F' ? [Number.parseInt(port, 16)] : []
  })
}

/** Sends a request with any headers, which `fetch` does not allow. Resolves with the status and the response headers. */
function send(
  port: number,
  {
    method = 'GET',
    path = '/mcp',
    headers = {},
    body,
  }: {
    readonly method?: string
    readonly path?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  } = {},
) {
  return new Promise<{ status: number | undefined; headers: NodeJS.Dict<string | string[]> }>(
    (resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
        response.resume()
        response.once('end', () => resolve({ status: response.statusCode, headers: response.headers }))
      })
      sent.once('upgrade', (_response, socket) => {
        socket.destroy()
        resolve({ status: 101, headers: {} })
      })
      sent.once('error', reject)
      sent.end(body)
    },
  )
}

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function startBackground(t: Test): Promise<UpHome> {
  const up = await makeUpHome(t, ['claude-desktop', 'cursor'])
  const { stdout } = await up.up('--background', '--except', 'postgres')
  t.match(stdout, 'files, memory')
  return up
}

t.test('up: other users and web pages cannot use any of its ports', async (t) => {
  const up = await startBackground(t)
  const { pid } = up.instance()
  const ports = listeningPorts(pid)
  const consolePort = Number(
    new URL(JSON.parse((await up.gatehouse('status', '--json')).stdout).console).port,
  )
  t.ok(ports.includes(up.port))
  t.ok(ports.length >= 7, 'the address, the console, the control listener, and two ports per server')
  const cursor = { authorization: `Bearer ${up.token('cursor')}` }

  await t.test('without a token, every port rejects every request', async (t) => {
    const attacks = [
      { method: 'POST', headers: json, body: initialize },
      { method: 'POST', headers: { ...json, authorization: 'Bearer wrong' }, body: initialize },
      { method: 'POST', headers: { ...json, authorization: up.token('cursor') }, body: initialize },
      { method: 'GET', path: '/status' },
      { method: 'GET', path: '/health' },
      { method: 'GET', path: '/readyz' },
      { method: 'GET', path: '/api/v1/me' },
      { method: 'POST', path: '/stop' },
      {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      },
      { method: 'GET', headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'x' } },
    ] as const
    for (const port of ports.filter((candidate) => candidate !== consolePort)) {
      for (const attack of attacks) {
        const { status, headers } = await send(port, attack)
        t.equal(status, 401, `${port} ${JSON.stringify(attack).slice(0, 80)}`)
        t.notOk(headers['access-control-allow-origin'])
      }
    }
    t.equal(
      (await send(consolePort, { path: '/api/v1/me' })).status,
      401,
      'the console requires its own token',
    )
    t.equal((await send(consolePort, { path: '/api/v1/me', headers: cursor })).status, 401)
  })

  await t.test('a client’s token opens only the address', async (t) => {
    const call = { method: 'POST', headers: { ...json, ...cursor }, body: initialize }
    t.equal((await send(up.port, call)).status, 200)
    for (const port of ports.filter((candidate) => candidate !== up.port && candidate !== consolePort))
      t.equal((await send(port, call)).status, 401, `${port}`)
  })

  await t.test('a page with a stolen token is rejected by its Origin and its Host', async (t) => {
    const call = (headers: Record<string, string>) =>
      send(up.port, { method: 'POST', headers: { ...json, ...cursor, ...headers }, body: initialize })
    t.equal((await call({ origin: 'https://evil.example' })).status, 403)
    t.equal((await call({ origin: 'null' })).status, 403)
    t.equal((await call({ host: 'evil.example' })).status, 403)
    t.equal((await call({ host: `localhost:${up.port}` })).status, 200)
  })

  await t.test(
    'another user cannot read the tokens and the parked entries',
    { skip: process.getuid?.() !== 0 && 'needs root' },
    async (t) => {
      chmodSync(up.home, 0o755)
      for (const path of ['tokens/cursor', 'parked.json', 'instance.json', 'settings.json', 'up.log']) {
        t.ok(existsSync(join(up.state, path)), path)
        const { status } = spawnSync('/bin/cat', [join(up.state, path)], { uid: 65_534, gid: 65_534 })
        t.not(status, 0, `${path} stays unreadable`)
      }
    },
  )

  await t.test('logs and reports contain no token and no parked secret', async (t) => {
    const texts = [
      readFileSync(join(up.state, 'up.log'), 'utf8'),
      readFileSync(join(up.state, 'logs/gatehouse.log'), 'utf8'),
      (await up.gatehouse('status')).stdout,
      readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
    ]
    for (const text of texts) {
      t.notMatch(text, up.token('cursor'))
      t.notMatch(text, secret)
    }
    t.notMatch(readFileSync(join(up.state, 'up.log'), 'utf8'), 'launch=')
  })
})

t.test('up: a second instance is rejected, and leaves the first one and the files as they are', async (t) => {
  const up = await startBackground(t)
  const before = up.read('cursor')
  const { pid } = up.instance()
  t.match(await up.up('--background'), { code: 2, stderr: /already running \(process \d+\)/ })
  t.match(await up.up(), { code: 2, stderr: /already running/ })
  t.equal(up.read('cursor'), before)
  t.equal(up.instance().pid, pid)
})

t.test('up: of two instances that start together, one runs, and the other one changes nothing', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const both = [up.start(), up.start()]
  const ready = both.map((running) => running.waitFor(/^Press Ctrl-C/m).then(() => running))
  const [one, other] = await Promise.allSettled(ready)
  const winner = [one, other].filter((result) => result?.status === 'fulfilled')
  t.equal(winner.length, 1)
  t.strictSame(
    both.map(({ child }) => child.exitCode).filter((code) => code !== null),
    [2],
  )
  t.strictSame(up.changed(), ['cursor'], 'the other one has not restored the file')
  for (const running of both) await running.interrupt()
  t.strictSame(up.changed(), [])
})

t.test('up: after kill -9, down restores every byte, and up starts again', async (t) => {
  const up = await startBackground(t)
  const stolen = up.token('cursor')
  process.kill(up.instance().pid, 'SIGKILL')
  t.match(await up.gatehouse('status'), { code: 1, stderr: /Clients’ files still use its address/ })
  const thief = createServer().listen(up.port, '127.0.0.1')
  await once(thief, 'listening')
  t.match(await up.gatehouse('up', '--resume'), { code: 1, stderr: /is in use by another program/ })
  t.equal(up.token('cursor'), stolen, 'another program at the address gets no new token')
  await new Promise((resolve) => thief.close(resolve))
  t.match((await up.up('--background', '--only', 'files')).stdout, /ready {5}files {3}1 tool/)
  t.strictSame(up.changed(), ['cursor'], 'a client that is no longer connected has its servers back')
  const headers = { ...json, authorization: `Bearer ${stolen}` }
  const { status } = await send(up.port, { method: 'POST', headers, body: initialize })
  t.equal(status, 401, 'a token from the previous run is rejected')
  const sdk = await connectThroughEntry(up, 'cursor')
  t.equal((await sdk.listTools()).tools.length, 1, 'the parked server runs again')
  await sdk.close()
  process.kill(up.instance().pid, 'SIGKILL')
  t.equal((await up.gatehouse('down')).code, 0)
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state))
})

t.test('up: a kill while servers start leaves the files as they are', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const running = up.start()
  await running.waitFor(/^Starting files …$/m)
  running.child.kill('SIGKILL')
  t.strictSame(up.changed(), [])
  t.equal((await up.gatehouse('down')).code, 0)
  t.notOk(existsSync(up.state))
})

t.test('down: a file that changed loses only the gateway’s entry', async (t) => {
  const up = await startBackground(t)
  writeFileSync(up.fileOf('cursor'), up.read('cursor').replace('"other"', '"mine": 1, "other"'))
  const { code, stdout } = await up.gatehouse('down')
  t.equal(code, 0)
  t.match(stdout, /^Cursor: .* has changed since gatehouse up: removed only the gateway’s entry/m)
  t.match(stdout, /^Claude Desktop: .* restored, byte for byte$/m)
  t.strictSame(Object.keys(up.serversOf('cursor')), ['files'])
  t.match(up.read('cursor'), '"mine": 1')
})

t.test('down: reports a file that it cannot restore, and repeats it later', async (t) => {
  const up = await startBackground(t)
  const parked = up.read('cursor')
  writeFileSync(up.fileOf('cursor'), '{ broken')
  const failed = await up.gatehouse('down')
  t.equal(failed.code, 1)
  t.match(failed.stdout, /^Cursor: .* could not be restored/m)
  t.ok(existsSync(join(up.state, 'parked.json')))
  writeFileSync(up.fileOf('cursor'), parked)
  t.equal((await up.gatehouse('down')).code, 0)
  t.strictSame(up.changed(), [])
})

t.test('down: leaves the file of a running client, which would overwrite it', async (t) => {
  const up = await makeUpHome(t, ['claude-desktop'])
  const target = {
    client: 'claude-desktop' as const,
    file: up.fileOf('claude-desktop'),
    key: ['mcpServers'],
  }
  const what = { entry: { command: 'gatehouse' }, servers: ['memory', 'postgres'] }
  const options = {
    journal: new ParkJournal(up.state),
    records: join(up.home, '.local/state/gatehouse/clients'),
    name: 'gatehouse',
  }
  await parkServers(target, what, options)
  const program = join(up.home, 'claude-desktop')
  symlinkSync('/bin/sleep', program)
  const running = spawn(program, ['600'], { env: up.env, stdio: 'ignore' })
  t.teardown(() => running.kill())
  await once(running, 'spawn')
  t.match(await up.gatehouse('down'), {
    code: 1,
    stdout: /could not be restored \(Claude Desktop is running .*run gatehouse down again/,
  })
  t.strictSame(up.changed(), ['claude-desktop'])
  t.match(readFileSync(join(up.state, 'parked.json'), 'utf8'), secret, 'the servers are not lost')
  t.equal((await up.gatehouse('down', '--while-running')).code, 0)
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state))
})

t.test('down: never kills a process that may be another program', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const other = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  t.teardown(() => other.kill())
  await once(other, 'spawn')
  mkdirSync(up.state, { recursive: true, mode: 0o700 })
  const instance = join(up.state, 'instance.json')
  writeFileSync(instance, JSON.stringify({ pid: other.pid, startedAt: null }))
  const { code, stderr } = await up.gatehouse('down')
  t.equal(code, 2)
  t.match(
    stderr,
    `process ${other.pid} does not answer and may be another program: stop it, or remove ${instance}`,
  )
  t.equal(other.signalCode, null)
  t.equal(other.exitCode, null)

  // On Linux, the start time shows that the id belongs to another process.
  writeFileSync(instance, JSON.stringify({ pid: other.pid, startedAt: '1' }))
  t.equal((await up.gatehouse('down')).code, 0)
  t.equal(other.exitCode, null)
  t.notOk(existsSync(up.state))
})

t.test('down: a killed process that was not collected counts as ended', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  // The shell is replaced while its child runs, so that it never waits for that child.
  const script = 'sleep 1 & echo $!; exec sleep 600'
  const parent = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => parent.kill())
  const [output] = await once(parent.stdout, 'data')
  const pid = Number(String(output))
  const fieldsOf = () =>
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
  while (fieldsOf()[0] !== 'Z') await delay(20)
  mkdirSync(up.state, { recursive: true, mode: 0o700 })
  writeFileSync(join(up.state, 'instance.json'), JSON.stringify({ pid, startedAt: fieldsOf()[19] }))
  t.match(await up.gatehouse('status'), { code: 1, stdout: 'gatehouse up is not running.\n' })
})

const hasPs = spawnSync('ps', ['-p', '1']).error === undefined

t.test('up: reads the start time of a process from ps', { skip: !hasPs && 'needs ps' }, async (t) => {
  const found = startByPs(process.pid)
  t.match(found, /\d\d:\d\d:\d\d \d{4}$/)
  t.equal(startByPs(process.pid), found)
  t.equal(startByPs(99_999_999), null)
})
