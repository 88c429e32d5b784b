/**
 * Records the first minutes with `gatehouse up`: `make recording`. Installs the packed package into an empty home folder
 * with ten servers in the files of three clients, runs `up`, signs in to two servers in Chromium, calls a tool through
 * each client's own entry, and runs `down`. Each file must then have its original bytes.
 *
 * Runs twice: first with an empty npm cache, so that npx downloads every server, then with the filled cache. Needs access
 * to the npm registry. Writes docs/images/up.cast, up.svg and the pictures of the pages from the first run, and prints
 * the times of both runs. Keys in addresses are hidden in the recording.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { freePort } from '../helpers/gatehouse.ts'
import { type ProtectedServer, startProtectedServer } from '../helpers/sign-in/rig.ts'
import { castOf, svgOf } from './cast.ts'
import { openPages } from './pages.ts'
import { Recorder } from './recorder.ts'
import { linkPrograms, type RecordedClient, type TenServers, writeTenServers } from './ten-servers.ts'

const root = resolve(import.meta.dirname, '../..')
const images = join(root, 'docs/images')
const tarball = readdirSync(root).find((name) => /^gatehouse-.*\.tgz$/.test(name))
if (tarball === undefined) throw new Error('there is no package: run make package first')

const temp = mkdtempSync(join(tmpdir(), 'up-recording-'))
const closers: (() => unknown)[] = []
const scope = { teardown: (close: () => unknown) => void closers.push(close) }

try {
  const remote = { mail: await startLoginServer(), tracker: await startLoginServer() }
  const cache = join(temp, 'cache')
  const cold = await firstMinutes('cold', { remote, cache, pictures: images })
  const warm = await firstMinutes('warm', { remote, cache, pictures: undefined })
  writeFileSync(join(images, 'up.cast'), castOf(cold.recorder.recorded))
  const label = 'A terminal: install, gatehouse up with ten servers, sign in, call and gatehouse down'
  writeFileSync(join(images, 'up.svg'), svgOf(cold.recorder.recorded, label))
  process.stdout.write(`Seconds since the start, with a cold and a warm npm cache:\n`)
  for (const [index, [what, seconds]] of cold.times.entries())
    process.stdout.write(`  ${what.padEnd(44)} ${seconds}   ${warm.times[index]?.[1]}\n`)
} finally {
  for (const close of closers.toReversed()) await close()
  rmSync(temp, { recursive: true, force: true, maxRetries: 5 })
}

/** Starts an MCP server behind a provider that shows its own login and consent forms. */
async function startLoginServer(): Promise<ProtectedServer> {
  let server: ProtectedServer | undefined
  server = await startProtectedServer(scope, {
    features: { devInteractions: { enabled: true } },
    intercept(req, res) {
      if (!server || !req.url?.startsWith('/interaction/')) return false
      void server.idp.provider.callback()(req, res)
      return true
    },
  })
  return server
}

/** The variables that npm needs to reach its registry from this machine. */
function networkEnvironment(): NodeJS.ProcessEnv {
  const needed = /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_file|npm_config_(registry|cafile))$/i
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => needed.test(name)))
}

interface RunOptions {
  readonly remote: { readonly mail: ProtectedServer; readonly tracker: ProtectedServer }
  /** Folder of the npm cache. */
  readonly cache: string
  /** Folder for the pictures. Undefined for none. */
  readonly pictures: string | undefined
}

async function firstMinutes(name: string, { remote, cache, pictures }: RunOptions) {
  const home = join(temp, name)
  mkdirSync(home)
  symlinkSync(join(root, tarball ?? ''), join(home, tarball ?? ''))
  linkPrograms(join(temp, `${name}-programs`))
  const servers = writeTenServers(home, { mail: remote.mail.url, tracker: remote.tracker.url })
  const env: NodeJS.ProcessEnv = {
    ...networkEnvironment(),
    HOME: home,
    TMPDIR: temp,
    PATH: [join(home, 'bin'), join(temp, `${name}-programs`)].join(':'),
    npm_config_prefix: home,
    npm_config_cache: cache,
    npm_config_fund: 'false',
    npm_config_audit: 'false',
    npm_config_update_notifier: 'false',
  }
  const mask = (text: string) => text.replaceAll(/((?:key|launch)=)[\w-]+/g, '$1…').replaceAll(home, '~')
  const recorder = new Recorder({ cwd: home, env, mask })
  const startedAt = performance.now()
  const times: (readonly [string, string])[] = []
  const mark = (what: string) =>
    times.push([what, ((performance.now() - startedAt) / 1000).toFixed(1)] as const)

  await recorder.run(`npm install --global ./${tarball}`)
  mark('installed')
  const port = await freePort()
  try {
    // One server is skipped.
    const printed = await recorder.run(`gatehouse up --background --yes --port ${port}`, { code: 1 })
    mark('gatehouse up has reported')
    await callThrough('Claude Desktop', 'claude-desktop', 'filesystem_list_directory', {
      path: join(home, 'notes'),
    })
    mark('first call through a client')
    const pages = await openPages(scope, pictures)
    const address = /^Console: (\S+)$/m.exec(printed)?.[1] ?? ''
    await pages.showConsole(address, 'up-console')
    for (const server of ['mail', 'tracker']) {
      const [, signIn = ''] = new RegExp(`sign in +${server} +open (\\S+)`).exec(printed) ?? []
      await pages.signIn(signIn, 'ana', 'up-sign-in')
      recorder.record(`# In the browser: signed in to ${server}\n`)
    }
    mark('signed in to two servers')
    await untilReady(recorder)
    await callThrough('Cursor', 'cursor', 'mail_whoami', {})
    await callThrough('VS Code', 'vscode', 'tracker_whoami', {})
    await callThrough('VS Code', 'vscode', 'slow_list_allowed_directories', {})
    mark('calls through three clients')
  } finally {
    await recorder.run('gatehouse down')
  }
  mark('gatehouse down')
  const changed = servers.changed()
  if (changed.length > 0) throw new Error(`not restored: ${changed.join(', ')}`)
  recorder.record('# Compared byte for byte: all three files are as they were\n')
  return { recorder, times }

  /** Calls a tool as the client does: starts the program in its entry. */
  async function callThrough(
    title: string,
    client: RecordedClient,
    tool: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const text = await callTool(servers, client, { tool, args, env })
    recorder.record(`# ${title} calls ${tool}: ${text.replaceAll(/\s+/g, ' ')}\n`)
  }
}

async function callTool(
  servers: TenServers,
  client: RecordedClient,
  { tool, args, env }: { readonly tool: string; readonly args: object; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const { command, args: programArgs } = servers.entryOf(client)
  const sdk = new Client({ name: client, version: '1' })
  const transport = new StdioClientTransport({
    command,
    args: [...programArgs],
    env: env as Record<string, string>,
  })
  await sdk.connect(transport)
  try {
    const { content, isError } = await sdk.callTool({ name: tool, arguments: { ...args } })
    const [first] = content as readonly { readonly text?: string }[]
    if (isError === true || first?.text === undefined) throw new Error(`${tool}: ${JSON.stringify(content)}`)
    return first.text.trim()
  } finally {
    await sdk.close()
  }
}

/** Runs `gatehouse status` until every server that runs is ready. Only the last output is recorded. */
async function untilReady(recorder: Recorder): Promise<void> {
  for (;;) {
    const before = recorder.recorded.length
    const status = await recorder.run('gatehouse status', { code: 1 })
    if (/^ {2}ready .*mail.*tracker/m.test(status)) return
    recorder.recorded.splice(before)
    await new Promise((done) => setTimeout(done, 500))
  }
}
