/** `gatehouse up` and `down` with the files of three clients. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startGatehouse } from '../../helpers/gatehouse.ts'
import { connectThroughEntry, makeUpHome, secret, type UpHome } from '../../helpers/up/up-home.ts'
import { missingTerminal, startOnTerminal } from '../../helpers/terminal.ts'
import { untyped } from '../../helpers/untyped.ts'

t.setTimeout(900_000)

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) =>
    join(entry.parentPath, entry.name),
  )
}

async function callStart(up: UpHome, client: 'claude-desktop' | 'cursor' | 'vscode', tool: string) {
  const sdk = await connectThroughEntry(up, client)
  const result = untyped(await sdk.callTool({ name: tool, arguments: {} }))
  const names = (await sdk.listTools()).tools.map(({ name }) => name)
  await sdk.close()
  return { names, answer: JSON.parse(result.content[0].text) }
}

t.test('up: connects the clients in the background, and down restores every byte', async (t) => {
  const up = await makeUpHome(t)
  mkdirSync(join(up.home, '.vscode'))
  const project = '{"servers":{"own":{"command":"node","args":["x"]}}}'
  writeFileSync(join(up.home, '.vscode/mcp.json'), project)

  const started = await up.up('--background')
  t.equal(started.code, 1, 'one server was skipped')
  t.match(started.stdout, /^Found 4 servers in Claude Desktop, Cursor and VS Code\.$/m)
  t.match(started.stdout, /^ {2}ready {5}files, memory, thinking {3}3 tools$/m)
  t.match(started.stdout, /^ {2}skipped {3}postgres: not-installed-docker is not installed$/m)
  t.match(
    started.stdout,
    `One address: ${up.url}\nClaude Desktop, Cursor and VS Code now use it. Undo with: gatehouse down\n`,
  )

  t.strictSame(Object.keys(up.serversOf('claude-desktop')), ['postgres', 'gatehouse'])
  t.strictSame(Object.keys(up.serversOf('cursor')), ['gatehouse'])
  t.strictSame(Object.keys(up.serversOf('vscode')), ['gatehouse'])
  t.equal(readFileSync(join(up.home, '.vscode/mcp.json'), 'utf8'), project, 'project files stay unchanged')

  for (const [client, tool] of [
    ['claude-desktop', 'files_start'],
    ['cursor', 'thinking_start'],
    ['vscode', 'memory_start'],
  ] as const) {
    const { names, answer } = await callStart(up, client, tool)
    t.strictSame(names.toSorted(), ['files_start', 'memory_start', 'thinking_start'], 'no tool appears twice')
    t.strictSame(answer.args, [tool.replace('_start', '')])
    if (client === 'vscode') t.equal(answer.token, secret, 'the server has the variables of its entry')
  }

  for (const path of filesBelow(up.state)) {
    const { mode } = lstatSync(path)
    t.equal(mode & 0o077, 0, `only the owner can use ${path}`)
  }
  const texts = (['claude-desktop', 'cursor', 'vscode'] as const).map((client) => up.read(client)).join('\n')
  for (const client of ['claude-desktop', 'cursor', 'vscode'] as const)
    t.notMatch(texts, up.token(client), 'client files contain no token')

  const status = await up.gatehouse('status', '--json')
  t.equal(status.code, 1, 'one server was skipped')
  const report = JSON.parse(status.stdout)
  t.match(report, {
    schema: 'gatehouse.dev/up/v1',
    url: up.url,
    tools: 3,
    servers: [
      { name: 'files', state: 'ready' },
      { name: 'memory', state: 'ready' },
      { name: 'thinking', state: 'ready' },
      { name: 'postgres', state: 'skipped', reason: 'not-installed-docker is not installed' },
    ],
    newServers: [],
  })
  t.match((await up.gatehouse('logs', 'files')).stdout, /files/)
  t.match(await up.gatehouse('restart', 'files'), { code: 0, stdout: 'Restarted files.\n' })
  t.match(await up.gatehouse('restart', 'fils'), {
    code: 2,
    stderr: /no running server fils; did you mean files\? Servers: files, memory, thinking/,
  })

  const down = await up.gatehouse('down')
  t.equal(down.code, 0, down.stderr)
  t.match(down.stdout, /^Cursor: ~\/\.cursor\/mcp\.json restored, byte for byte$/m)
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state), 'nothing is left behind')
  t.match(await up.gatehouse('status'), { code: 1, stdout: 'gatehouse up is not running.\n' })
  t.match(await up.gatehouse('down'), { code: 0, stdout: /is not running/ })
})

t.test('up: Ctrl-C of the foreground restores every byte', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const running = up.start()
  await running.waitFor(/^Press Ctrl-C to stop and to restore the files\.$/m)
  t.strictSame(up.changed(), ['cursor'])
  t.equal(await running.interrupt(), 0)
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state))
})

t.test('up: asks on a terminal, and requires --yes without one', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.match(await up.gatehouse('up'), { code: 2, stderr: /without a terminal, .* use --yes/ })
  t.strictSame(up.changed(), [])
})

t.test('up: changes files only after a yes on the terminal', { skip: missingTerminal }, async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const args = ['up', '--port', String(up.port)]
  for (const answer of ['n', '']) {
    const refused = startOnTerminal(args, up.env)
    await refused.waitFor(/Start the servers and change these files\? \[y\/N\] /)
    t.match(refused.output(), '~/.cursor/mcp.json')
    refused.type(`${answer}\r`)
    t.equal(await refused.ended(), 1)
    t.match(refused.output(), 'Nothing was changed.')
    t.notOk(existsSync(up.state))
  }
  const accepted = startOnTerminal(args, up.env)
  await accepted.waitFor(/\[y\/N\] /)
  accepted.type('y\r')
  await accepted.waitFor(/Press Ctrl-C to stop/)
  t.strictSame(up.changed(), ['cursor'])
  accepted.type('\x03')
  // The shell around the program gets Ctrl-C too, so the exit code is the shell's.
  await accepted.ended()
  t.strictSame(up.changed(), [])
})

t.test('up: --dry-run shows masked changes and makes none', async (t) => {
  const up = await makeUpHome(t)
  const { code, stdout } = await up.gatehouse('up', '--dry-run')
  t.equal(code, 1, 'one server would be skipped')
  t.match(stdout, /^-.*"memory": \{/m)
  t.match(stdout, /^The entry runs: .* proxy stdio http:\/\/127\.0\.0\.1:4483\/mcp /m)
  t.notMatch(stdout, secret)
  const json = JSON.parse((await up.gatehouse('up', '--dry-run', '--json')).stdout)
  t.equal(json.schema, 'gatehouse.dev/up-preview/v1')
  t.equal(json.files.length, 3)
  t.notMatch(JSON.stringify(json), secret)
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state))
})

t.test('up: leaves out entries that call its own address', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const entries = {
    gatehouse: { url: 'http://localhost:4483/mcp' },
    other: { url: 'http://127.0.0.1:4484/mcp' },
  }
  writeFileSync(up.fileOf('cursor'), JSON.stringify({ mcpServers: entries }))
  const lines = async (...args: string[]) => (await up.gatehouse('up', '--dry-run', ...args)).stdout
  t.match(await lines(), /^ {2}run {7}other$/m)
  t.match(await lines('--port', '4484'), /^ {2}run {7}gatehouse$/m)
})

t.test('up: a relative state folder does not depend on the folder of the servers', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  up.env['GATEHOUSE_STATE_DIR'] = 'relative-state'
  const { stdout } = await up.gatehouse('up', '--dry-run')
  t.match(stdout, join(process.cwd(), 'relative-state/up/tokens/cursor'))
})

t.test('up: without --at-login, stores no variables and removes an earlier autostart', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const text = up.read('cursor').replace('"command"', '"env": { "TOKEN": "${env:UP_TEST_TOKEN}" }, "command"')
  writeFileSync(up.fileOf('cursor'), text)
  up.env['UP_TEST_TOKEN'] = secret
  const unit = join(up.home, '.config/systemd/user/gatehouse-up.service')
  mkdirSync(dirname(unit), { recursive: true })
  writeFileSync(unit, '')
  const started = await up.up('--background')
  t.match(started, { code: 0, stderr: 'Removed the autostart at login; pass --at-login to keep it.' })
  t.notOk(existsSync(unit))
  const { answer } = await callStart(up, 'cursor', 'files_start')
  t.equal(answer.token, secret)
  for (const path of filesBelow(up.state))
    if (lstatSync(path).isFile()) t.notMatch(readFileSync(path, 'utf8'), secret, path)
})

t.test('up: checks again for another instance after the prompt', { skip: missingTerminal }, async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const waiting = startOnTerminal(['up'], up.env)
  await waiting.waitFor(/\[y\/N\] /)
  await up.up('--background')
  const settings = readFileSync(join(up.state, 'settings.json'), 'utf8')
  waiting.type('y\r')
  t.equal(await waiting.ended(), 2)
  t.match(waiting.output(), 'already running')
  t.equal(readFileSync(join(up.state, 'settings.json'), 'utf8'), settings)
})

t.test('up: --only, --except and --from select servers, and refuse unknown names', async (t) => {
  const up = await makeUpHome(t)
  const runs = async (...args: string[]) =>
    /^ {2}run {7}(.*)$/m.exec((await up.gatehouse('up', '--dry-run', ...args)).stdout)?.[1]
  t.equal(await runs('--only', 'files,memory'), 'files, memory')
  t.equal(await runs('--except', 'files', '--except', 'memory'), 'thinking')
  t.equal(await runs('--from', 'cursor'), 'files')
  t.equal(await runs('--from', up.fileOf('vscode')), 'thinking')
  t.match(await up.gatehouse('up', '--dry-run', '--only', 'fles'), {
    code: 2,
    stderr: /--only: unknown server fles; did you mean files\? Servers: /,
  })
  const file = join(up.home, 'servers.json')
  writeFileSync(file, '{"mcpServers":{"extra":{"command":"node","args":["x"]}}}')
  const preview = (await up.gatehouse('up', '--dry-run', '--from', file, '--connect', 'cursor')).stdout
  t.match(preview, /^ {2}run {7}extra$/m)
  t.match(preview, /^ {2}files {5}~\/\.cursor\/mcp\.json$/m)
})

t.test('up: leaves servers that fail in their client, and fails when none is left', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  writeFileSync(
    up.fileOf('cursor'),
    '{"mcpServers":{"crash":{"command":"node","args":["-e","console.error(\'boom\');process.exit(3)"]}}}',
  )
  const before = up.read('cursor')
  const { code, stdout } = await up.up()
  t.equal(code, 1)
  t.match(
    stdout,
    /^ {2}skipped {3}crash: The program exited with code 3: boom\n {12}Next step: .*gatehouse logs crash/m,
  )
  t.equal(up.read('cursor'), before)
})

t.test('up: other commands name the reason why a server was skipped', async (t) => {
  const up = await makeUpHome(t, ['claude-desktop'])
  t.equal((await up.up('--background')).code, 1)
  t.match(await up.gatehouse('doctor', 'postgres'), {
    code: 1,
    stdout:
      /gatehouse up skipped this server: not-installed-docker is not installed[\s\S]*then run gatehouse down and gatehouse up/,
  })
  for (const command of [['tools', 'list'], ['lock']])
    t.match(
      (await up.gatehouse(...command, 'postgres')).stderr,
      /gatehouse up skipped postgres: not-installed-docker is not installed; running on this machine: .*memory/,
      command.join(' '),
    )
  t.equal((await up.gatehouse('down')).code, 0)
  t.notMatch((await up.gatehouse('doctor', 'postgres')).stdout, 'skipped this server')
})

t.test('up: offers the servers that were added since', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.equal((await up.up('--background')).code, 0)
  const text = up
    .read('cursor')
    .replace('"gatehouse":', '"added":{"command":"node","args":["x"]},"gatehouse":')
  writeFileSync(up.fileOf('cursor'), text)
  t.match(
    (await up.gatehouse('status')).stdout,
    /^New in Cursor: added\. To add it: gatehouse down, then gatehouse up$/m,
  )
  const preview = (await up.gatehouse('up', '--dry-run')).stdout
  t.match(preview, /^ {2}run {7}added, files$/m)
  t.match(preview, /^ {2}new {7}added$/m)
})

t.test('up: --at-login starts the confirmed servers again, and a signal leaves the files', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const argv = JSON.parse(up.read('cursor').replace(/^\{ \/\/.*$/m, '{')).mcpServers.files.args
  const servers = {
    files: { command: 'node', args: argv, env: { TOKEN: '${env:UP_TEST_TOKEN}' } },
    other: { command: 'node', args: argv, env: { TOKEN: '${env:UP_TEST_MISSING}' } },
  }
  const original = JSON.stringify({ mcpServers: servers })
  writeFileSync(up.fileOf('cursor'), original)
  up.env['UP_TEST_TOKEN'] = secret
  const started = await up.up('--at-login')
  t.match(started.stdout, /^ {2}ready {5}files {3}1 tool$/m)
  t.match(started.stdout, /^ {2}skipped {3}other: UP_TEST_MISSING is not set$/m)
  const unit = join(up.home, '.config/systemd/user/gatehouse-up.service')
  t.match(readFileSync(unit, 'utf8'), /^ExecStart=.*"up" "--resume"$/m)
  t.notMatch(readFileSync(unit, 'utf8'), secret)
  const parked = up.read('cursor')

  const { pid } = up.instance()
  process.kill(pid, 'SIGTERM')
  while (existsSync(join(up.state, 'instance.json'))) await delay(50)
  t.equal(up.read('cursor'), parked, 'the file still contains the gateway’s entry')

  // The next login has no shell variables, and a server that was added since stays in its client.
  writeFileSync(up.fileOf('cursor'), parked.replace('"gatehouse"', '"added":{"command":"x"},"gatehouse"'))
  up.env['UP_TEST_TOKEN'] = ''
  const again = startGatehouse(['up', '--resume'], up.env)
  await again.waitFor(/^One address: /m)
  t.strictSame(Object.keys(up.serversOf('cursor')).toSorted(), ['added', 'gatehouse', 'other'])
  const { answer } = await callStart(up, 'cursor', 'files_start')
  t.equal(answer.token, secret)

  const down = await up.gatehouse('down')
  t.match(down.stdout, `Removed the autostart at login: ${unit}`)
  t.notOk(existsSync(unit))
  t.strictSame(Object.keys(up.serversOf('cursor')).toSorted(), ['added', 'files', 'other'])
})

t.test('up: wrong usage is rejected by flag, and nothing is started', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--json'], /--json: requires --yes or --dry-run/],
    [['--dry-run', '--yes'], /--yes: has no effect with --dry-run/],
    [['--dry-run', '--background'], /--background: has no effect with --dry-run/],
    [['--dry-run', '--at-login'], /--at-login: has no effect with --dry-run/],
    [['--dry-run', '--start-timeout', '9'], /--start-timeout: has no effect with --dry-run/],
    [['--dry-run', '--while-running'], /--while-running: has no effect with --dry-run/],
    [['--yes', '--background', '--at-login'], /--background: has no effect with --at-login/],
    [['--yes', '--connect', 'vscode'], /--connect: folder ~\/.config\/Code\/User does not exist/],
    [['--yes', '--only', 'postgresql'], /--only: unknown server postgresql\. Servers: files/],
    [['--yes', '--background', '--verbose'], /--verbose: has no effect in the background/],
    [['--yes', '--from', 'cursr'], /cursr: no such client or file; did you mean cursor/],
    [['--yes', '--connect', 'cursr'], /cursr: no such client; did you mean cursor/],
    [['--yes', '--except', 'fils'], /--except: unknown server fils; did you mean files/],
    [['--resume'], /there is nothing to resume; run gatehouse up/],
    [['--start-timeout', '0'], /1 to 3600/],
    [['--port', '0'], /1 to 65535/],
  ]
  for (const [args, message] of cases)
    t.match(await up.gatehouse('up', ...args), { code: 2, stderr: message })
  t.strictSame(up.changed(), [])
  t.notOk(existsSync(up.state))
})
