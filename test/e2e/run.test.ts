/** `gatehouse run` serves servers at one address without manifests, with a user's command lines and real clients. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { descendantsOf, freePort, isAlive, runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { connect } from '../helpers/mcp/clients.ts'
import { startEverything } from '../helpers/mcp/everything.ts'
import { argvServer, askStarted, startRun } from '../helpers/clients/run-rig.ts'

t.setTimeout(240_000)

await t.test('run: passes arguments and variables unchanged to a command on standard streams', async (t) => {
  const words = ['--flag', 'a b', "it's", '$(TOKEN) $$ {x}', '']
  const { running, url } = await startRun(t, ['-e', 'TOKEN', '--', ...argvServer, ...words], {
    TOKEN: 'canary-token',
  })
  const client = await connect('sdk2-stateless', url)
  t.strictSame(
    (await client.listTools()).map(({ name }) => name),
    ['start'],
    'one server: unchanged names',
  )
  await client.close()
  t.match(await askStarted(url, 'start'), { args: words, token: 'canary-token' })
  t.notMatch(running.output(), 'canary')
  const children = descendantsOf(running.child.pid ?? 0)
  t.ok(children.length > 0)
  t.equal(await running.interrupt(), 0)
  t.notOk(children.some(isAlive), 'no process is left')
})

await t.test('run: output of a program does not control the terminal', async (t) => {
  const line = '\u001b]52;c;eA==\u0007\u001b[2Jgone\u202e'
  for (const more of [[], ['-v']]) {
    const args = [
      'run',
      ...more,
      '--',
      process.execPath,
      '-e',
      `console.error(${JSON.stringify(line)}); process.exit(3)`,
    ]
    const { code, stderr } = await runGatehouse(args)
    t.equal(code, 3)
    t.match(stderr, 'gone\ufffd')
    for (const hidden of ['\u001b', '\u0007', '\u202e'])
      t.notOk(stderr.includes(hidden), JSON.stringify(hidden))
  }
})

await t.test(
  'run: combines several servers, one with its own listener, one already running on this machine',
  async (t) => {
    const port = String(await freePort())
    const script = argvServer[1]
    const other = spawn(process.execPath, [script, '--listen', port], { stdio: ['ignore', 'ignore', 'pipe'] })
    t.teardown(() => other.kill())
    await once(other.stderr, 'data')
    const { url } = await startRun(
      t,
      [
        ...['--url', `there=http://localhost:${port}/mcp`, '--header', 'X-Key=MY_KEY', '--http'],
        ...['--server', `second=${argvServer.join(' ')} --listen {port} "x y"`],
        ...['--name', 'first', '--', ...argvServer, '--listen', '{port}'],
      ],
      { MY_KEY: 'canary-key' },
    )
    const client = await connect('sdk1', url)
    const names = (await client.listTools()).map(({ name }) => name).toSorted()
    await client.close()
    t.strictSame(names, ['first_start', 'second_start', 'there_start'])
    const { args, port: given } = await askStarted(url, 'second_start')
    t.strictSame(args, ['--listen', given, 'x y'])
    t.match(await askStarted(url, 'there_start'), { headers: { key: 'canary-key' } })
  },
)

await t.test('run: prints the exit code and output of a command that ends at once', async (t) => {
  const ended = await runGatehouse([
    'run',
    '--',
    'node',
    '-e',
    'console.error("no licence"); process.exit(7)',
  ])
  t.strictSame([ended.code, ended.stdout], [7, ''])
  t.match(ended.stderr, /The program exited with code 7: no licence\n$/)
  const absent = await runGatehouse(['run', '--', '/no/such/program'])
  t.equal(absent.code, 1)
  t.match(absent.stderr, /The command was not found: \/no\/such\/program\n {2}Next step: install it/)
})

await t.test('run: names a server that never responds', async (t) => {
  const script = 'setInterval(() => {}, 1e6)'
  const { code, stderr } = await runGatehouse(['run', '--start-timeout', '5', '--', 'node', '-e', script])
  t.equal(code, 1)
  t.match(stderr, /node: not responding/)
})

await t.test('run: prints an address at once for a silent URL, and reports each change', async (t) => {
  const everything = await startEverything(t, 'streamableHttp')
  await everything.kill()
  const port = String(await freePort())
  const running = startGatehouse(['run', '--port', port, '--name', 'there', '--url', everything.url])
  t.teardown(() => running.interrupt())
  await running.waitFor(new RegExp(`^http://127\\.0\\.0\\.1:${port}/mcp$`, 'm'))
  t.notMatch(running.output(), /The server is responding/)
  await everything.start()
  await running.waitFor(/^there: responding$/m)
  await running.waitFor(/^The server is responding\.$/m)
  await everything.kill()
  await running.waitFor(/^there: no longer responding: .+\n {2}Next step: check /m)
  t.equal(await running.interrupt(), 0)
})

await t.test(
  'run: a server that accepts connections and sends nothing does not delay the others',
  async (t) => {
    const hole = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(hole, 'listening')
    t.teardown(() => hole.close())
    const { port } = hole.address() as AddressInfo
    const running = startGatehouse([
      ...['run', '--port', String(await freePort()), '--url', `hole=http://127.0.0.1:${port}/mcp`],
      ...['--name', 'argv', '--', ...argvServer],
    ])
    t.teardown(() => running.interrupt())
    const [url = ''] = await running.waitFor(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/m)
    await running.waitFor(/^hole: Health check timed out\n {2}Next step: check the load on hole/m)
    t.ok(await askStarted(url, 'argv_start'))
  },
)
