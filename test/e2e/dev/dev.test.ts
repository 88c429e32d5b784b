/**
 * The quickstart as a client uses it: manifests become one MCP endpoint. The servers come from npm, and the clients use
 * both SDK generations.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { descendantsOf, freePort, isAlive, startGatehouse } from '../../helpers/gatehouse.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-e2e-'))
cpSync('manifests/examples/quickstart', folder, { recursive: true })
const port = await freePort()
const url = new URL(`http://127.0.0.1:${port}/mcp`)
const dev = startGatehouse(['dev', '-f', folder, '--port', String(port)])
t.teardown(async () => {
  await dev.interrupt()
  rmSync(folder, { recursive: true, force: true })
})
await dev.waitFor(/backends: everything, files, memory/)

async function connect() {
  const client = new Client({ name: 'e2e', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  return client
}

function textOf(response: unknown): string {
  return JSON.stringify((response as { content: unknown }).content)
}

await t.test(
  'quickstart: a client lists the tools of all servers under their prefixes and calls one of each',
  async (t) => {
    const client = await connect()
    const { tools } = await client.listTools()
    for (const prefix of ['everything_', 'files_', 'memory_']) {
      t.ok(
        tools.some(({ name }) => name.startsWith(prefix)),
        prefix,
      )
    }
    t.match(
      textOf(await client.callTool({ name: 'everything_echo', arguments: { message: 'hello' } })),
      'Echo: hello',
    )
    t.match(textOf(await client.callTool({ name: 'memory_read_graph', arguments: {} })), 'entities')
    t.match(
      textOf(await client.callTool({ name: 'files_list_allowed_directories', arguments: {} })),
      process.cwd(),
    )
    t.ok((await client.listResources()).resources.length > 0, 'resources')
    t.ok((await client.listPrompts()).prompts.length > 0, 'prompts')
    await client.close()
  },
)

await t.test('quickstart: the other SDK generation works as well', async (t) => {
  const client = new ModernClient({ name: 'e2e', version: '1' })
  await client.connect(new ModernTransport(url))
  const { tools } = await client.listTools()
  t.ok(tools.some(({ name }) => name === 'memory_read_graph'))
  const response = await client.callTool({ name: 'everything_echo', arguments: { message: 'again' } })
  t.match(textOf(response), 'Echo: again')
  await client.close()
})

await t.test(
  'quickstart: neither an open session nor a stateless client notices a restart of the everything server',
  async (t) => {
    const client = await connect()
    const stateless = new ModernClient(
      { name: 'e2e', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    await stateless.connect(new ModernTransport(url))
    const echo = { name: 'everything_echo', arguments: { message: 'still here' } }
    await Promise.all([client.callTool(echo), stateless.callTool(echo)])
    const find = () =>
      descendantsOf(dev.child.pid ?? 0).find((pid) =>
        /^\S*node (?:--\S+ )*\S*server-everything\S* streamableHttp/.test(commandOf(pid)),
      )
    const before = find()
    if (before === undefined) throw new Error('the everything server does not run')
    const listening = Number(/(?:^|\0)PORT=(\d+)/.exec(readFileSync(`/proc/${before}/environ`, 'utf8'))?.[1])
    process.kill(before, 'SIGKILL')
    while (isAlive(before) || find() === undefined || !(await accepts(listening))) await setTimeout(50)
    t.match(textOf(await client.callTool(echo)), 'Echo: still here')
    t.match(textOf(await stateless.callTool(echo)), 'Echo: still here')
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'everything_echo'))
    await Promise.all([client.close(), stateless.close()])
  },
)

await t.test(
  'quickstart: an edit adds and removes a backend without a restart, and notifies open sessions',
  async (t) => {
    const client = await connect()
    const changed = () =>
      new Promise<void>((resolve) => {
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
      })
    const names = async () => (await client.listTools()).tools.map(({ name }) => name)
    await names()
    const vmcp = descendantsOf(dev.child.pid ?? 0).filter((pid) => commandOf(pid).includes('vmcp serve'))
    const path = join(folder, 'servers.yaml')
    const before = readFileSync(path, 'utf8')

    let told = changed()
    writeFileSync(path, withoutServer(before, 'memory'))
    await told
    t.notOk(
      (await names()).some((name) => name.startsWith('memory_')),
      'removed',
    )

    told = changed()
    writeFileSync(path, before)
    await told
    t.ok(
      (await names()).some((name) => name.startsWith('memory_')),
      'added again',
    )

    const next = await connect()
    t.ok(
      (await next.listTools()).tools.some(({ name }) => name.startsWith('memory_')),
      'the next session lists it',
    )
    await next.close()
    await client.close()
    t.same(
      descendantsOf(dev.child.pid ?? 0).filter((pid) => commandOf(pid).includes('vmcp serve')),
      vmcp,
      'the virtual server was not restarted',
    )
  },
)

await t.test(
  'quickstart: rejects an invalid edit with its reason, and keeps the running servers',
  async (t) => {
    const path = join(folder, 'virtual-server.yaml')
    const before = readFileSync(path, 'utf8')
    writeFileSync(path, before.replace('conflictResolution: prefix', 'conflictResolution: prefixed'))
    await dev.waitFor(/not applied:[\s\S]*conflictResolution/)
    const client = await connect()
    t.ok((await client.listTools()).tools.length > 0)
    await client.close()
    writeFileSync(path, before)
  },
)

await t.test('quickstart: Ctrl-C ends every process', async (t) => {
  const started = descendantsOf(dev.child.pid ?? 0)
  t.ok(started.length >= 4, `${started.length} processes`)
  t.equal(await dev.interrupt(), 0)
  // A killed process takes a moment to end. If one stays alive, this loop ends with the test's timeout.
  while (started.some(isAlive)) await setTimeout(20)
  t.same(started.filter(isAlive), [])
})

/** True when something listens on a loopback port. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

function withoutServer(text: string, name: string): string {
  return text
    .split('---\n')
    .filter((part) => !part.includes(`  name: ${name}\n`))
    .join('---\n')
}
