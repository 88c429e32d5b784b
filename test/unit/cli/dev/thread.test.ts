/** This program in a thread of `gatehouse dev`: when it can run there, how it ends, and its output. */
import t from 'tap'
import { canRunInThread, startThread } from '../../../../runtime/toolkit/local/processes/thread.ts'
import { freePort, program } from '../../../helpers/gatehouse.ts'

const own = [process.execPath, program]
const cwd = process.cwd()
const spec = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => ({
  argv: [...own, ...args],
  env,
  cwd,
})

t.test(
  'thread: only this program runs in a thread, and only if it does not require its own process',
  async (t) => {
    t.ok(canRunInThread(spec(['proxy', 'x']), own.length))
    t.notOk(canRunInThread({ argv: ['node', 'server.js'], env: {}, cwd }, 0), 'another program')
    t.notOk(canRunInThread(spec(['proxy', 'x', '--workers=2']), own.length), 'it starts child processes')
    t.notOk(
      canRunInThread(spec(['proxy', 'x'], { NODE_OPTIONS: '--inspect' }), own.length),
      'options for Node',
    )
    t.notOk(
      canRunInThread(spec(['proxy', 'x'], { TZ: 'Nowhere/Else' }), own.length),
      'read once in a process',
    )
  },
)

await t.test(
  'thread: accepts requests, logs to its own output, and stops on request with code 0',
  async (t) => {
    const lines: string[] = []
    const port = await freePort()
    const args = ['proxy', '--target-uri=http://127.0.0.1:9', 'x', '--host=127.0.0.1', `--port=${port}`]
    const told = Promise.withResolvers<void>()
    const thread = startThread(spec(args, { PATH: process.env['PATH'] ?? '' }), own.length, (line) => {
      lines.push(line)
      if (/Transparent proxy started/.test(line)) told.resolve()
    })
    await told.promise
    t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200)
    await thread.stop(10_000)
    t.equal(await thread.exited, 'exited with code 0')
    t.match(lines.join('\n'), /"level":"warn".*no --oidc-\* flag set/, 'the log is written, too')
    await t.rejects(fetch(`http://127.0.0.1:${port}/health`), 'its port is released')
  },
)

await t.test('thread: invalid arguments end the thread with an error', async (t) => {
  const lines: string[] = []
  const thread = startThread(
    spec(['proxy', '--no-such-flag', 'x']),
    own.length,
    (line) => void lines.push(line),
  )
  t.equal(await thread.exited, 'exited with code 2')
  t.match(lines.join('\n'), 'no-such-flag')
})
