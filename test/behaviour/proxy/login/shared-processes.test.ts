/**
 * Several `proxy stdio` processes share one persisted login at a provider that rotates refresh tokens and revokes the
 * login when one is used twice.
 */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { parseTarget } from '../../../../runtime/config/proxy/target.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { isKeptLogin, type KeptLogin, persistedName } from '../../../../runtime/outgoing/login/kept-login.ts'
import { persistInDirectory } from '../../../../runtime/outgoing/login/persisted.ts'
import { providerProfiles } from '../../../helpers/oauth/providers/profiles.ts'
import { type FakeProvider, startProvider } from '../../../helpers/oauth/providers/provider.ts'
import { startTarget, textOf } from '../../../helpers/oauth/providers/target.ts'
import { type StdioProcess, startStdioProcess } from '../../../helpers/proxy/stdio-process.ts'

t.setTimeout(300_000)

const hourMs = 3_600_000

interface World {
  readonly provider: FakeProvider
  readonly dir: string
  /** Starts another process. The first one signs in. */
  start(): Promise<StdioProcess>
  /** Starts a process and does not wait for it. */
  spawn(): StdioProcess
  /** Reads the persisted login as the processes do. */
  read(): KeptLogin
  write(state: KeptLogin): void
  /** Name of each file with a login or registration. */
  files(): readonly string[]
}

async function startWorld(t: Test): Promise<World> {
  const provider = await startProvider(providerProfiles.keycloak)
  provider.lifeSec = 3_600
  const target = await startTarget(provider)
  t.teardown(() => Promise.all([provider.close(), target.close()]))
  const dir = mkdtempSync(join(tmpdir(), 'shared-'))
  const persisted = persistInDirectory(dir, undefined, silentLog)
  const { remote } = resolveProxyConfig('stdio', { targetUri: target.url, remoteAuth: true }, {})
  if (remote.kind !== 'oauth') throw new Error('no login is configured')
  const name = persistedName(parseTarget(target.url), remote)
  const spawn = (): StdioProcess => {
    const args = [`${target.url}/mcp`, '--remote-auth', '--remote-auth-skip-browser']
    return startStdioProcess(t, [...args, '--remote-auth-callback-port', '0'], dir)
  }
  return {
    provider,
    dir,
    spawn,
    async start() {
      const started = spawn()
      const opened = started.open()
      if (provider.logins === 0) await browse((await started.errorLine(loginUrl))[0])
      await opened
      return started
    },
    read() {
      const state = persisted.read(name)
      if (!isKeptLogin(state)) throw new Error('no login is persisted')
      return state
    },
    write: (state) => persisted.write(name, state),
    files: () => readdirSync(dir).filter((file) => file.endsWith('.login')),
  }
}

const loginUrl = /http:\/\/127\.0\.0\.1:\S+\/auth\?\S+/

/** Simulates the browser of a login. */
async function browse(url: string): Promise<void> {
  await (await fetch(url)).arrayBuffer()
}

/** Revokes the current token at the provider, and advances the clocks of the processes. */
async function endToken(
  { provider }: World,
  processes: readonly StdioProcess[],
  aheadMs: number,
): Promise<void> {
  provider.expire()
  await Promise.all(processes.map((each) => each.ahead(aheadMs)))
}

function callAll(processes: readonly StdioProcess[], calls: number): Promise<readonly unknown[]> {
  return Promise.all(
    Array.from({ length: calls }, async (_, index) => processes[index % processes.length]?.call()),
  )
}

await t.test('two processes: 1,000 calls over 50 expirations need one login', async (t) => {
  const world = await startWorld(t)
  const { provider } = world
  const processes = [await world.start(), await world.start()]
  const files = world.files()
  let aheadMs = 0
  for (let expiration = 1; expiration <= 50; expiration++) {
    // Every second time, the provider ends the token early, and the target rejects it.
    aheadMs += expiration % 2 === 0 ? 60_000 : hourMs
    await endToken(world, processes, aheadMs)
    const messages = await callAll(processes, 20)
    t.same(new Set(messages.map(textOf)), new Set(['done']), `expiration ${expiration}`)
    t.same(world.files(), files)
    t.equal(provider.refreshes, expiration)
  }
  t.equal(provider.logins, 1)
  t.notOk(provider.hasReuse)
})

await t.test('three processes: one is killed while it renews the login', async (t) => {
  const world = await startWorld(t)
  const { provider, dir } = world
  const processes = [await world.start(), await world.start(), await world.start()]
  const killed: number[] = []
  provider.beforeRefresh = async () => {
    provider.beforeRefresh = undefined
    const lock = readdirSync(dir).find((file) => file.endsWith('.lock')) ?? ''
    const pid = Number(readFileSync(join(dir, lock), 'utf8').split(' ')[0])
    process.kill(pid, 'SIGKILL')
    await processes.find((each) => each.pid === pid)?.ended
    killed.push(pid)
    provider.outage = 'cut'
    // Only the killed process gets this response.
    setImmediate(() => (provider.outage = undefined))
  }
  await endToken(world, processes, hourMs)
  const messages = await callAll(processes, 30)
  t.equal(killed.length, 1)
  t.equal(
    messages.filter((message) => textOf(message) === 'done').length,
    20,
    'the calls of the other processes',
  )
  const others = processes.filter(({ pid }) => !killed.includes(pid))
  for (let expiration = 2; expiration <= 5; expiration++) {
    await endToken(world, others, expiration * hourMs)
    t.same(new Set((await callAll(others, 6)).map(textOf)), new Set(['done']))
  }
  const next = await world.start()
  t.equal(textOf(await next.call()), 'done', 'a process that starts later')
  t.equal(provider.logins, 1)
  t.notOk(provider.hasReuse)
  t.same(
    readdirSync(dir).filter((file) => /\.(?:lock|guard)$/.test(file)),
    [],
  )
})

await t.test('two processes use a login file that an older build wrote', async (t) => {
  const world = await startWorld(t)
  const { provider } = world
  await world.start()
  const { savedAtMs: _, ...older } = world.read()
  world.write(older)
  const processes = [await world.start(), await world.start()]
  for (let expiration = 1; expiration <= 3; expiration++) {
    await endToken(world, processes, expiration * hourMs)
    t.same(new Set((await callAll(processes, 10)).map(textOf)), new Set(['done']))
    t.equal(provider.refreshes, expiration)
  }
  t.equal(provider.logins, 1)
  t.notOk(provider.hasReuse)
})

await t.test(
  'three processes start without a login: one signs in, and the others use that login',
  async (t) => {
    const { provider, spawn } = await startWorld(t)
    const processes = [spawn(), spawn(), spawn()]
    const opened = Promise.all(processes.map((each) => each.open()))
    const [url] = await Promise.race(processes.map((each) => each.errorLine(loginUrl)))
    const others = processes.filter((each) => !each.errors().includes(url))
    t.equal(others.length, 2)
    await Promise.all(others.map((each) => each.errorLine(/Another process is signing in/)))
    await browse(url)
    await opened
    t.same(new Set((await callAll(processes, 6)).map(textOf)), new Set(['done']))
    t.equal(provider.logins, 1)
    for (const each of others) t.notMatch(each.errors(), loginUrl)
  },
)
