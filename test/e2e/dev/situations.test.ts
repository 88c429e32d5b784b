/** Breaks processes, ports, signals and files while `gatehouse dev` runs, and checks the output. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { group, manifest, server, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import {
  descendantsOf,
  freePort,
  isAlive,
  program,
  runGatehouse,
  startGatehouse,
} from '../../helpers/gatehouse.ts'

const argvServer = 'node test/helpers/clients/argv-server.ts'
const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
const listening = server('web', `${argvServer} --listen {port}`)
const talking = server('talk', argvServer, stdio)

async function takenPort(t: { teardown: (end: () => void) => void }): Promise<number> {
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => taken.close())
  await once(taken, 'listening')
  return (taken.address() as { port: number }).port
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

await t.test('dev: a taken port is an error that names the next free port, exit code 2', async (t) => {
  const port = await takenPort(t)
  const folder = t.testdir({ 'm.yaml': [group(), virtualServer()].join('\n---\n') })
  const { code, stderr } = await runGatehouse(['dev', '-f', folder, '--port', String(port)])
  t.equal(code, 2)
  t.match(stderr, new RegExp(`port ${port} is in use by another program; .*use --port \\d+, which is free`))
})

await t.test(
  'dev: a virtual server of several workers runs in one process, and its log reports it',
  async (t) => {
    const wide = manifest('VirtualMCPServer', 'v', {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'anonymous' },
      config: { operational: { workers: 3 } },
    })
    const { dev } = await startDev(t, [group(), talking, wide], { args: ['--verbose'] })
    await dev.waitFor(/operational\.workers is 3, but gatehouse dev runs the virtual server in one process/)
    await dev.waitFor(/^v: backends: talk$/m)
  },
)

await t.test('dev: reports the awaited port and the output of a server that never listens', async (t) => {
  const mute = server('mute', `node -e 'console.log("going nowhere"), setInterval(() => 0, 1e6)'`)
  const { dev } = await startDev(t, [group(), mute], { args: ['--start-timeout', '2'] })
  await dev.waitFor(
    /^MCPServer mute: starting: The server is starting: not ready after 2 s: no program is listening on 127\.0\.0\.1:\d+; the command must listen on the port in \{port\} or PORT\ngoing nowhere$/m,
  )
})

for (const [name, command, why] of [
  [
    'dead',
    'no-such-program --flag',
    'The command was not found: no-such-program; install it, or correct the command of dead; .*',
  ],
  [
    'looping',
    `node -e 'process.exit(7)'`,
    'The program exited with code 7; .*run gatehouse logs looping to see the full output; restarted automatically',
  ],
] as const) {
  for (const [kind, spec] of [
    ['listening', {}],
    ['stdio', stdio],
  ] as const) {
    await t.test(`dev: restarts a ${name} ${kind} server with backoff and counts the restarts`, async (t) => {
      const { dev } = await startDev(t, [group(), server(name, command, spec)])
      await dev.waitFor(new RegExp(`^MCPServer ${name}: failed: ${why}`, 'm'))
      await dev.waitFor(new RegExp(`^MCPServer ${name}: failed: .*2 restarts so far`, 'm'))
      t.notMatch(dev.output(), /EADDRINUSE/)
    })
  }
}

await t.test('dev: starts an edited command after the old process has ended', async (t) => {
  const { dev, write } = await startDev(t, [group(), listening, talking, virtualServer()])
  await dev.waitFor(/^v: backends: talk, web$/m)
  write(
    group(),
    listening.replace('{port}', '{port} again'),
    talking.replace('server.ts', 'server.ts again'),
    virtualServer(),
  )
  const commands = () => descendantsOf(dev.child.pid ?? 0).map((pid) => commandOf(pid))
  const again = () => commands().filter((command) => / again( |$)/.test(command))
  while (!again().some((c) => c.includes('--listen')) || !again().some((c) => !c.includes('--listen'))) {
    await new Promise(setImmediate)
  }
  const { output } = dev
  await dev.waitFor(/^edit applied at \S+ MCPServer web, MCPServer talk$/m)
  // `dev` prints no line for a start that ends before the next refresh of the screen.
  const [, port = ''] = /MCPServer web: ready on 127\.0\.0\.1:(\d+)/.exec(output()) ?? []
  while (!(await answers(Number(port)))) await new Promise((resolve) => setTimeout(resolve, 50))
  t.notMatch(output(), /EADDRINUSE|in use/)
})

await t.test('dev: restarts each killed child, and reports it', async (t) => {
  const { dev } = await startDev(t, [group(), listening, virtualServer()])
  await dev.waitFor(/^v: backends: web$/m)
  const children = descendantsOf(dev.child.pid ?? 0)
  t.equal(children.length, 2, 'the server and the watching shell; our own parts run in threads')
  for (const child of children) process.kill(child, 'SIGKILL')
  await dev.waitFor(
    /^MCPServer web: failed: The program exited: ended by SIGKILL.*; restarted automatically/m,
  )
  await dev.waitFor(
    /^MCPServer web: ready on \S+; 1 restart, the last one after: The program exited: ended by SIGKILL/m,
  )
})

await t.test(
  'dev: reports a port that another program took, and restarts the server when it is free',
  async (t) => {
    const { dev } = await startDev(t, [group(), listening])
    await dev.waitFor(/^MCPServer web: ready/m)
    const servers = () =>
      descendantsOf(dev.child.pid ?? 0).filter((pid) => /--listen \d/.test(commandOf(pid)))
    const port = Number(/--listen (\d+)/.exec(commandOf(servers()[0] ?? 0))?.[1])
    // Each restart waits longer than the previous one, so the other program gets the port eventually.
    let thief: Server | undefined
    while (thief === undefined) {
      const children = servers()
      for (const child of children) process.kill(child, 'SIGKILL')
      while (children.some(isAlive)) await new Promise(setImmediate)
      thief = await listenOn(port)
    }
    await dev.waitFor(
      new RegExp(
        `^MCPServer web: failed: The port is not free: port ${port} is in use by another program; stop that program`,
        'm',
      ),
    )
    thief.close()
    await dev.waitFor(/^MCPServer web: ready on \S+; \d+ restarts?/m)
  },
)

await t.test('dev: shows the logs of one running server', async (t) => {
  const loud = server('loud', `node -e 'console.error("hear me"), setInterval(() => 0, 1e6)'`)
  const tmp = mkdtempSync(join(tmpdir(), 'dev-logs-'))
  t.teardown(() => rmSync(tmp, { recursive: true, force: true }))
  const env = { TMPDIR: tmp }
  const { dev } = await startDev(t, [group(), loud], { args: ['-v'], env })
  await dev.waitFor(/hear me/)
  const all = { ...process.env, ...env }
  const { code, stdout } = await runGatehouse(['logs', 'loud'], '', all)
  t.equal(code, 0)
  t.match(stdout, /^\[mcp-loud-server\] hear me$/m)
  const other = await runGatehouse(['logs', 'quiet'], '', all)
  t.equal(other.code, 2)
  t.match(other.stderr, 'no output from "quiet"; output is available for: loud')
  const following = startGatehouse(['logs', 'loud', '-f'], all)
  await following.waitFor(/hear me/)
  t.equal(await following.interrupt(), 0)
  t.equal(await dev.interrupt(), 0)
  t.match(dev.output(), /^Stopped after \d+ s\. Resources:\n {2}MCPServer loud: no restarts$/m)
  const none = await runGatehouse(['logs', 'loud'], '', all)
  t.equal(none.code, 2)
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  await t.test(
    `dev: ${signal} ends it with code 0 and no leftover process, also while servers start`,
    async (t) => {
      const { dev } = await startDev(t, [group(), listening, virtualServer()])
      await dev.waitFor(/MCPServer web: starting/)
      const children = descendantsOf(dev.child.pid ?? 0)
      dev.child.kill(signal)
      const [code] = (await once(dev.child, 'exit')) as [number | null]
      t.equal(code, 0)
      t.strictSame(children.filter(isAlive), [])
    },
  )
}

await t.test(
  'dev: an unwritable folder for temporary files is an error that names it, exit code 2',
  async (t) => {
    const folder = t.testdir({ 'm.yaml': group() })
    const { code, stderr } = await runGatehouse(['dev', '-f', folder], '', {
      ...process.env,
      TMPDIR: '/proc',
    })
    t.equal(code, 2)
    t.match(stderr, /cannot write to \/proc \(E[A-Z]+\); free up space there, or set TMPDIR/)
  },
)

await t.test('dev: reports files that cannot be written, and does not hang', async (t) => {
  const folder = t.testdir({ 'm.yaml': [group(), virtualServer()].join('\n---\n') })
  const port = String(await freePort())
  // The limit makes every write to a file fail, as on a full disk. NODE_OPTIONS is unset because tap's loader would
  // write a file at exit.
  const line = `unset NODE_OPTIONS; ulimit -f 0; exec '${process.execPath}' ${program} dev -f '${folder}' --port ${port}`
  const child = spawn('bash', ['-c', line], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  let text = ''
  for await (const chunk of child.stdout) {
    text += String(chunk)
    if (/VirtualMCPServer v: not run: cannot write to \S+ \(EFBIG\); free up space there/.test(text)) break
  }
  t.match(text, /VirtualMCPServer v: not run: /)
  child.kill()
  const [code] = (await once(child, 'exit')) as [number | null]
  t.equal(code, 0)
})

await t.test('dev: applies ten saves by rename as ten edits', async (t) => {
  const { dev, folder, write } = await startDev(t, [group('g0')])
  const path = join(folder, 'manifests.yaml')
  await dev.waitFor(/^MCPGroup g0: unused/m)
  for (let i = 1; i <= 10; i++) {
    writeFileSync(join(folder, '.swap'), group(`g${i}`))
    renameSync(join(folder, '.swap'), path)
    await dev.waitFor(new RegExp(`^MCPGroup g${i}: unused`, 'm'))
    await dev.waitFor(new RegExp(`^MCPGroup g${i - 1} removed`, 'm'))
  }
  rmSync(path)
  await dev.waitFor(/^MCPGroup g10 removed|the latest edit was not applied/m)
  write(group('back'))
  await dev.waitFor(/^MCPGroup back: unused/m)
})

/** Undefined when the port is taken. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
