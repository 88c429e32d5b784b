/** Runs `gatehouse run` and `gatehouse dev` with servers that start slowly or end: one process, and clear output. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { group, server, startDev, virtualServer } from '../helpers/dev-rig.ts'
import { freePort, startGatehouse } from '../helpers/gatehouse.ts'
import { readJournal, type Script, scripted } from '../helpers/mcp/scripted-stdio-program.ts'

t.setTimeout(300_000)

function slowServer(t: Test, script: Partial<Script> = {}) {
  const folder = t.testdir({ journal: '' })
  const gate = join(folder, 'gate')
  const journal = join(folder, 'journal')
  return {
    words: [process.execPath, ...scripted({ journal, gate, ...script })],
    open: () => writeFileSync(gate, ''),
    read: () => readJournal(journal),
  }
}

await t.test(
  'run: a slow server that exits on unknown methods is one process until it responds',
  async (t) => {
    const { words, open, read } = slowServer(t, { on: { 'server/discover': { do: 'exit', code: 1 } } })
    const port = String(await freePort())
    const running = startGatehouse(['run', '--port', port, '--name', 'slow', '--', ...words])
    t.teardown(() => running.interrupt())
    // Health checks of `run` time out after two seconds, so several have failed by then.
    await running.waitFor(/^slow: starting \(\d+ s\); -v shows its output$/m)
    open()
    await running.waitFor(/^The server is responding\.$/m)
    const entries = read()
    t.equal(entries.filter(({ what }) => what === 'start').length, 1, 'one process')
    t.notOk(entries.some(({ what }) => what === 'end'))
    t.equal(entries[1]?.what, 'initialize', 'the first request')
    process.kill(entries[0]?.pid ?? 0, 'SIGKILL')
    await running.waitFor(/^slow: ended by SIGKILL; the next session starts it again$/m)
    t.equal(await running.interrupt(), 0)
  },
)

await t.test(
  'run: prints the exit code and the last lines of a server that starts slowly and fails',
  async (t) => {
    const { words, open } = slowServer(t, {
      stderr: ['npm error 404 \u001b[2Jno such package'],
      exitAtStart: 7,
    })
    const running = startGatehouse([
      'run',
      '--port',
      String(await freePort()),
      '--name',
      'slow',
      '--',
      ...words,
    ])
    t.teardown(() => running.interrupt())
    await running.waitFor(/^slow: starting/m)
    open()
    await running.waitFor(
      /^slow: (?:exited|The program exited) with code 7(?:\n {2}|: )npm error 404 no such package$/m,
    )
  },
)

await t.test('dev: shows the age, output and exit of a slow server', async (t) => {
  const { words, open, read } = slowServer(t, { stderr: ['fetching the package'] })
  const stdio = {
    transport: 'stdio',
    podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
  }
  const command = words.map((word) => `'${word}'`).join(' ')
  const { dev } = await startDev(t, [group(), server('slow', command, stdio), virtualServer()])
  await dev.waitFor(/^MCPServer slow: starting \(\d+ s\): no response yet$/m)
  t.match(dev.output(), /^fetching the package$/m)
  open()
  await dev.waitFor(/^v: backends: slow$/m)
  t.equal(read().filter(({ what }) => what === 'start').length, 1, 'one process')
  process.kill(read()[0]?.pid ?? 0, 'SIGKILL')
  await dev.waitFor(
    /^MCPServer slow: ready on \S+; 1 restart, the last one after: ended by SIGKILL: fetching the package$/m,
  )
})

await t.test('run and dev: show the error message of a server that rejects the session', async (t) => {
  const message = `set API_KEY \u001b[2Jfirst${'.'.repeat(2_000)}`
  const { words, open } = slowServer(t, { on: { initialize: { do: 'refuse', message } } })
  open()
  const running = startGatehouse(['run', '--port', String(await freePort()), '--name', 'shy', '--', ...words])
  t.teardown(() => running.interrupt())
  await running.waitFor(/^shy: rejects new sessions: set API_KEY \\u\{1b\}\[2Jfirst\.{10,500}…?$/m)
  t.equal(await running.interrupt(), 0)
  const stdio = {
    transport: 'stdio',
    podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
  }
  const command = [
    process.execPath,
    ...scripted({ journal: '/dev/null', on: { initialize: { do: 'refuse', message: 'no key' } } }),
  ]
  const line = command.map((word) => `'${word}'`).join(' ')
  const { dev } = await startDev(t, [group(), server('shy', line, stdio), virtualServer()])
  await dev.waitFor(
    /^MCPServer shy: failed: The server rejects new sessions: no key; correct the problem that the error from shy describes: run gatehouse logs shy to see its output$/m,
  )
})
