/** `gatehouse run --from`: references to variables in a client's file are resolved before anything starts. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import t from 'tap'
import { freePort, runGatehouse } from '../../helpers/gatehouse.ts'
import { argvServer, askStarted, startRun } from '../../helpers/clients/run-rig.ts'

t.setTimeout(120_000)

const [node, script] = argvServer

await t.test('values come from the environment, from files, and from defaults', async (t) => {
  const port = await freePort()
  const remote = spawn(process.execPath, [script, '--listen', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => remote.kill())
  await once(remote.stderr, 'data')
  const folder = t.testdir({
    'mcp.json': JSON.stringify({
      mcpServers: {
        started: {
          command: node,
          args: [resolve(script), '${WORD}', 'a-${SIZE:-small}', '${env:BOTH}'],
          env: { TOKEN: '${MY_TOKEN}' },
        },
        called: {
          url: `http://127.0.0.1:${port}/mcp`,
          headers: { 'X-Key': 'Bearer ${MY_KEY}' },
        },
        off: { command: 'x', args: ['${NEVER_SET}'], disabled: true },
      },
    }),
    first: 'WORD=one\nBOTH=file\n',
    second: '# words\nWORD="two words"\nMY_KEY=k1\n',
  })
  const files = ['--env-file', join(folder, 'first'), '--env-file', join(folder, 'second')]
  const { url } = await startRun(t, ['--from', join(folder, 'mcp.json'), ...files], {
    MY_TOKEN: 't1',
    BOTH: 'environment',
  })
  const told = await askStarted(url, 'started_start')
  t.match(told, { args: ['two words', 'a-small', 'environment'], token: 't1' })
  t.match(await askStarted(url, 'called_start'), { headers: { key: 'Bearer k1' } })
})

await t.test('a reference without a value is a named error before anything starts', async (t) => {
  const servers = {
    a: { command: node, args: ['${MISSING_ONE}'], env: { X: '${MISSING_TWO}' } },
    b: { url: 'http://127.0.0.1:1/mcp', headers: { 'X-Key': 'Bearer ${MISSING_TWO}' } },
  }
  const file = join(t.testdir({ 'mcp.json': JSON.stringify({ mcpServers: servers }) }), 'mcp.json')
  const ended = await runGatehouse(['run', '--from', file])
  t.match(ended, {
    code: 2,
    stdout: '',
    stderr:
      'Error: --from: variables not set: MISSING_ONE for a; MISSING_TWO for a, b. Set them, or pass a file with --env-file FILE\n',
  })
  const absent = await runGatehouse(['run', '--from', file, '--env-file', '/nonexistent'])
  // Node reads files of --env-file itself, wherever the flag occurs, and exits when a file is missing.
  t.not(absent.code, 0)
  t.match(absent.stderr, /\/nonexistent(?:: not found| cannot be read)/)
  const idle = await runGatehouse(['run', '--env-file', file, '--url', 'http://127.0.0.1:1/mcp'])
  t.match(idle, { code: 2, stderr: /--env-file: has no effect without --from, -e or --header/ })
})
