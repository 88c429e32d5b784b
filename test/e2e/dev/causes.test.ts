/**
 * A backend that is down has one cause with one next step in the terminal, /status, `tools list` and `doctor`. Commands
 * accept the names of running servers.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { group, server, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(240_000)

const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
const trace = 'console.error("Error: LICENCE is not set\\n    at a (/a.js:1:2)\\n    at b (/b.js:1:2)")'
const reason = 'The program exited with code 3: Error: LICENCE is not set'

// Sessions of other users of this machine are not candidates.
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-causes-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const env = { ...process.env, TMPDIR: folder }
const gatehouse = (...args: string[]) => runGatehouse(args, '', env)

const { dev, port } = await startDev(
  t,
  [
    group(),
    virtualServer('hub'),
    server('good', 'node test/helpers/clients/argv-server.ts', stdio),
    server('crash', `node -e '${trace}, process.exit(3)'`, stdio),
    server('gone', 'no-such-program', stdio),
  ],
  { env },
)
await dev.waitFor(/^hub: 2 of 3 backends are down: 1 exited, 1 not found$/m)

await t.test('candidates: without a session, commands print how to start one', async (t) => {
  const empty = t.testdir({})
  for (const command of [['doctor'], ['tools', 'list'], ['explain'], ['lock'], ['logs']]) {
    const { code, stderr } = await runGatehouse(command, '', { ...env, TMPDIR: empty })
    t.equal(code, 2, command.join(' '))
    t.match(stderr, /gatehouse (?:run|dev)/, command.join(' '))
  }
  const { code, stderr } = await gatehouse('client', 'add')
  t.equal(code, 2)
  t.match(stderr, /CLIENT is missing; .*(?:claude-desktop|on this machine)/)
})

await t.test('causes: the terminal prints the cause with its next step, and no stack', async (t) => {
  await dev.waitFor(
    new RegExp(`^MCPServer crash: failed: ${reason}; correct the problem .*gatehouse logs crash`, 'm'),
  )
  await dev.waitFor(/^MCPServer crash: failed: .*at least 2 restarts so far$/m)
  t.notMatch(dev.output(), 'at a (/a.js:1:2)')
})

await t.test('causes: /status has the exit code, the output and the next step', async (t) => {
  const status = (await (await fetch(`http://127.0.0.1:${port}/status`)).json()) as Record<string, unknown>
  t.equal(status['summary'], '2 of 3 backends are down: 1 exited, 1 not found')
  t.match(status['down'], [
    { label: 'exited', text: reason, fix: /gatehouse logs crash/, backends: ['crash'] },
    { label: 'not found', text: 'The command was not found: no-such-program', backends: ['gone'] },
  ])
  t.match(status['backends'], [
    { name: 'crash', last_error: { category: 'program_exited', exit_code: 3, detail: /LICENCE/ } },
    { name: 'gone', last_error: { category: 'program_not_found', fix: /install it/ } },
    { name: 'good', health: 'healthy' },
  ])
  t.match(status['problems'], [
    `backend crash is unhealthy: ${reason}`,
    /gone is unhealthy: The command was not found/,
  ])
})

await t.test('tools list: reports missing backends on standard error', async (t) => {
  const { stdout, stderr } = await gatehouse('tools', 'list', 'hub')
  t.notMatch(stdout, 'Warning')
  t.match(stderr, /^Warning: 2 of 3 backends are down: 1 exited, 1 not found$/m)
  t.match(stderr, new RegExp(`^  crash: ${reason}\n    Next step: .*gatehouse logs crash`, 'm'))
  const good = await gatehouse('tools', 'list', 'good')
  t.strictSame([good.code, good.stderr], [0, ''])
  t.match(good.stdout, 'start')
})

await t.test('tools call: suggests one name for a misspelt tool', async (t) => {
  for (const pairs of [[], ['x=1']]) {
    const { code, stderr } = await gatehouse('tools', 'call', 'good', 'strat', ...pairs)
    t.equal(code, 2)
    t.match(stderr, /the server has no tool "strat"; did you mean start\?$/m)
  }
})

await t.test('doctor: backends that are down are failures, and a name selects its server', async (t) => {
  const hub = await gatehouse('doctor', 'hub')
  t.equal(hub.code, 1)
  t.match(hub.stdout, /gateway\.backend: 2 of 3 backends are down: 1 exited, 1 not found/)
  t.match(hub.stdout, /^ {2}fix +crash: The program exited with code 3: Error: LICENCE is not set$/m)
  t.match(hub.stdout, /^ +Correct the problem .*gatehouse logs crash.*\n +gone: The command was not found/m)
  const gone = await gatehouse('doctor', 'gone')
  t.equal(gone.code, 1)
  t.match(gone.stdout, /The command was not found: no-such-program/)
  t.match(gone.stdout, /install it, or correct the command of gone/)
})

await t.test('names: commands list the candidates, and accept them without a token', async (t) => {
  for (const command of [['doctor'], ['tools', 'list'], ['explain'], ['lock']]) {
    const { code, stderr } = await gatehouse(...command)
    t.equal(code, 2, command.join(' '))
    t.match(stderr, /running on this machine: .*hub/, command.join(' '))
  }
  t.match((await gatehouse('logs')).stderr, /NAME is missing; output is available for: crash, /)
  t.match((await gatehouse('logs', 'crash')).stdout, 'LICENCE is not set')
  const explained = await gatehouse('explain', 'hub', '--tool', 'nothing')
  t.strictSame([explained.code, explained.stderr], [1, ''])
  t.match(explained.stdout, 'the item does not exist')
  const locked = await gatehouse('lock', 'good')
  t.equal(locked.code, 0, locked.stderr)
  t.match(locked.stdout, /kind: MCPToolLock[\s\S]*name: start/)
  t.match(locked.stdout, /kind: MCPServer\n    name: good/, 'the lock applies to the server in the manifests')
  t.match((await gatehouse('lock', 'nobody')).stderr, /no server named nobody; running on this machine: /)
  t.match(
    (await gatehouse('explain', 'nobody', '--tool', 'x')).stderr,
    /no virtual server named nobody; .*hub/,
  )
})
