/** `gatehouse run`: servers behind one address without manifests, as a user types it, with real clients. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { descendantsOf, freePort, isAlive, runGatehouse } from '../helpers/gatehouse.ts'
import { connect } from '../helpers/mcp/clients.ts'
import { argvServer, askStarted, startRun } from '../helpers/clients/run-rig.ts'

await t.test(
  'run: a command on standard streams, with its arguments and variables as they are',
  async (t) => {
    const words = ['--flag', 'a b', "it's", '$(TOKEN) $$ {x}', '']
    const { running, url } = await startRun(t, ['-e', 'TOKEN', '--', ...argvServer, ...words], {
      TOKEN: 'canary-token',
    })
    const client = await connect('sdk2-stateless', url)
    t.strictSame(
      (await client.listTools()).map(({ name }) => name),
      ['start'],
      'one server: names as they are',
    )
    await client.close()
    t.match(await askStarted(url, 'start'), { args: words, token: 'canary-token' })
    t.notMatch(running.output(), 'canary')
    const children = descendantsOf(running.child.pid ?? 0)
    t.ok(children.length > 0)
    t.equal(await running.interrupt(), 0)
    t.notOk(children.some(isAlive), 'nothing is left')
  },
)

await t.test(
  'run: several at once, one listening by itself, one running already on this machine',
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

await t.test('run: a command that ends at once gives its code and what it printed', async (t) => {
  const ended = await runGatehouse([
    'run',
    '--',
    'node',
    '-e',
    'console.error("no licence"); process.exit(7)',
  ])
  t.strictSame([ended.code, ended.stdout], [7, ''])
  t.match(ended.stderr, /exited with code 7\n {2}no licence/)
  const absent = await runGatehouse(['run', '--', '/no/such/program'])
  t.equal(absent.code, 1)
  t.match(absent.stderr, /the command was not found/)
})

await t.test('run: a server that never answers is told by name', async (t) => {
  const script = 'setInterval(() => {}, 1e6)'
  const { code, stderr } = await runGatehouse(['run', '--start-timeout', '5', '--', 'node', '-e', script])
  t.equal(code, 1)
  t.match(stderr, /node: does not answer/)
})
