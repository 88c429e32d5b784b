/**
 * `gatehouse import` converts the files of every client to manifests that are valid, run, and contain no secret in
 * plain text.
 */
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { connect } from '../../helpers/mcp/clients.ts'

t.setTimeout(120_000)

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-import-')))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
// A copy, because programs write to their home folder.
const home = join(folder, 'home')
cpSync(join(import.meta.dirname, '../../fixtures/clients/home'), home, { recursive: true })
const env = { ...process.env, HOME: home, XDG_STATE_HOME: join(folder, 'state'), XDG_CONFIG_HOME: '' }
const gatehouse = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  runGatehouse(args, '', { ...env, ...more })

interface Report {
  readonly servers: readonly {
    client: string
    name: string
    outcome: string
    object?: string
    notes: string[]
  }[]
  readonly missing: readonly { name: string; key: string }[]
  readonly written: readonly string[]
}

/** Expected result for each server of the fixtures. */
const expected: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'claude-desktop': {
    memory: 'MCPServer/memory',
    GitHub: 'MCPServer/github',
    linear: 'MCPServerEntry/linear',
    'files (C:)': 'MCPServer/files-c',
    'gatehouse-bridge': 'off',
  },
  'claude-code': { browser: 'MCPServer/browser', socket: 'not taken', database: 'MCPServer/database' },
  cursor: {
    search: 'MCPServerEntry/search',
    weather: 'partly MCPServer/weather',
    here: 'not taken',
    local: 'not taken',
    memory: 'same MCPServer/memory',
  },
  vscode: {
    tracker: 'MCPServerEntry/tracker',
    'old-feed': 'MCPServerEntry/old-feed',
    docs: 'MCPServerEntry/docs',
    pipe: 'not taken',
  },
  windsurf: { figma: 'MCPServerEntry/figma', paused: 'off', redis: 'partly MCPServer/redis' },
  codex: { tickets: 'MCPServerEntry/tickets', builds: 'MCPServer/builds' },
  gemini: { maps: 'MCPServerEntry/maps', stream: 'MCPServerEntry/stream', old: 'off' },
  zed: { pg: 'MCPServer/pg', 'extension-server': 'off', remote: 'MCPServerEntry/remote' },
  cline: { jira: 'MCPServerEntry/jira', legacy: 'MCPServerEntry/legacy' },
  goose: { developer: 'off', tavily: 'MCPServer/tavily', wiki: 'off' },
  copilot: { time: 'MCPServer/time', logs: 'MCPServerEntry/logs' },
  opencode: { context: 'MCPServerEntry/context', 'local-tool': 'not taken' },
  junie: { ide: 'MCPServer/ide' },
  roo: { roo: 'MCPServer/roo' },
}

await t.test('import: finds every client and reports each server', async (t) => {
  const { code, stdout, stderr } = await gatehouse(['import', '-o', 'json', '--save', join(folder, 'all')])
  t.equal(code, 1, 'some servers are not converted')
  t.notMatch(stdout + stderr, /canary/, 'the output contains no secret values')
  const { servers, missing, written } = JSON.parse(stdout) as Report
  for (const [client, names] of Object.entries(expected)) {
    const found = servers.filter((server) => server.client === client && server.name !== 'notes')
    const outcomes = found.map(({ name, outcome, object }) => [
      name,
      [outcome === 'taken' ? '' : outcome, object].filter(Boolean).join(' '),
    ])
    t.strictSame(Object.fromEntries(outcomes), names, client)
    for (const { name, outcome, notes } of found)
      if (outcome !== 'taken' && outcome !== 'same') t.ok(notes.length > 0, `${client}/${name} has a reason`)
  }
  t.strictSame(
    servers.filter(({ name }) => name === 'notes').map(({ object }) => object),
    ['MCPServerEntry/notes', 'MCPServerEntry/notes-2'],
  )
  t.ok(missing.some(({ name, key }) => name === 'tracker-secrets' && key === 'authorization'))
  t.strictSame(written, ['kustomization.yaml', 'secrets.yaml', 'servers.yaml', 'virtual-server.yaml'])
})

await t.test('import: writes valid manifests, with all secrets in one file for its owner', async (t) => {
  const all = join(folder, 'all')
  const { code, stderr } = await gatehouse(['validate', '-f', all])
  t.equal(code, 0, stderr)
  for (const name of readdirSync(all))
    t.equal(/canary/.test(readFileSync(join(all, name), 'utf8')), name === 'secrets.yaml', name)
  t.equal(statSync(join(all, 'secrets.yaml')).mode & 0o777, 0o600)
  t.equal(readFileSync(join(all, '.gitignore'), 'utf8'), '/secrets.yaml\n')
})

await t.test('import: writes the same bytes again, and replaces files only on request', async (t) => {
  const all = join(folder, 'all')
  const again = await gatehouse(['import', '--save', all])
  t.match(again.stdout, 'is up to date')
  writeFileSync(join(all, 'servers.yaml'), 'mine')
  const refused = await gatehouse(['import', '--save', all])
  t.equal(refused.code, 2)
  t.match(refused.stderr, /servers\.yaml already exist with different contents; use --force/)
  t.equal(readFileSync(join(all, 'servers.yaml'), 'utf8'), 'mine')
  t.match((await gatehouse(['import', '--save', all, '--force'])).stdout, /Written to .*: servers\.yaml\n/)
})

// The test of `gatehouse run --save` covers `dev` with a Secret manifest.
await t.test('import: dev runs the written manifests, with the secrets in a file of variables', async (t) => {
  const place = join(folder, 'env')
  const file = join(folder, 'servers.json')
  const script = join(import.meta.dirname, '../../helpers/clients/argv-server.ts')
  const servers = {
    'My Server': {
      command: 'node',
      args: [script, '--key', 'canary-arg', '${WHO}'],
      env: { TOKEN: 'canary-$(HOME)' },
    },
    echo: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-everything@2026.8.31'],
      env: { ECHO_SECRET: 'canary-echo' },
    },
  }
  writeFileSync(file, JSON.stringify({ mcpServers: servers }))
  const args = ['import', file, '--as', 'claude-code', '--save', place, '--secrets', 'env', '--resolve-env']
  const imported = await gatehouse(args, { WHO: 'ada' })
  t.equal(imported.code, 0, imported.stderr + imported.stdout)
  t.equal(statSync(join(place, 'secrets.env')).mode & 0o777, 0o600)
  const dev = startGatehouse(['dev', '-f', place, '--port', String(await freePort())])
  t.teardown(() => dev.interrupt())
  const [, url = ''] = await dev.waitFor(/ready at (\S+)/)
  const client = await connect('sdk1', url)
  t.match(JSON.parse(await client.callText('my-server_start')), {
    args: ['--key', 'canary-arg', 'ada'],
    token: 'canary-$(HOME)',
  })
  t.match(await client.callText('echo_get-env'), '"ECHO_SECRET": "canary-echo"')
  await client.close()
})

await t.test('import: reads standard input up to the largest file size, in chunks of any size', async (t) => {
  const servers = Object.fromEntries(
    Array.from({ length: 2000 }, (_, i) => [`s${i}`, { command: 'x', env: { PAD: 'a '.repeat(250) } }]),
  )
  const env = { ...process.env, HOME: t.testdir({}) }
  const { stdout, code } = await runGatehouse(
    ['import', '-', '-o', 'json'],
    JSON.stringify({ mcpServers: servers }),
    env,
  )
  t.equal(code, 0)
  t.equal(JSON.parse(stdout).servers.length, 2000)
  const huge = await runGatehouse(['import', '-'], ' '.repeat(9 * 1024 * 1024), env)
  t.match(huge.stdout, 'is larger than 8 MiB')
  t.equal(huge.code, 2)
})
