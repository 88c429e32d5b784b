/** What `gatehouse up` and the commands around it print in the first minutes. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { makeUpHome, type UpHome } from '../../helpers/up/up-home.ts'

t.setTimeout(300_000)

/** Adds servers to the file of Cursor, or replaces them. */
function writeServers(up: UpHome, servers: Readonly<Record<string, unknown>>): void {
  writeFileSync(up.fileOf('cursor'), JSON.stringify({ mcpServers: servers }))
}

t.test('up: names the servers that start slowly, and status names them as well', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const { command, args } = up.serversOf('cursor')['files'] as { command: string; args: string[] }
  const go = join(up.home, 'go')
  const script = `until [ -e "${go}" ]; do sleep 0.2; done; exec "${process.execPath}" "$@"`
  writeServers(up, {
    files: { command, args },
    slow: { command: 'sh', args: ['-c', script, 'sh', ...args] },
  })
  const started = up.start('--background')
  await started.waitFor(/^Starting files, slow …$/m)
  await started.waitFor(/^Waiting for slow …$/m)
  t.match(await up.gatehouse('status'), {
    code: 2,
    stderr: /gatehouse up is still starting \(process \d+\) and waiting for slow; try again/,
  })
  writeFileSync(go, '')
  await started.waitFor(/^ {2}ready {5}files, slow {3}2 tools$/m)
  t.equal(started.output().match(/^Waiting for slow …$/gm)?.length, 1, 'the same names are printed once')

  const log = readFileSync(join(up.state, 'logs/files.log'), 'utf8')
  t.match(log, '"rpc":"initialize"')
  t.notMatch(log, '"rpc":"ping"', 'health checks do not hide the output of the server')
  t.notMatch(log, 'every client that reaches this port may use the proxy', 'the port requires a token')
  t.match((await up.gatehouse('client', 'status', 'cursor')).stdout, /^cursor +user +connected /)
})

t.test('up: does not wait for npm longer than the start timeout', async (t) => {
  const registry = createServer(() => {}).listen(0, '127.0.0.1')
  await once(registry, 'listening')
  t.teardown(() => {
    registry.closeAllConnections()
    registry.close()
  })
  const address = registry.address()
  const port = typeof address === 'object' ? address?.port : 0
  const up = await makeUpHome(t, ['cursor'])
  up.env['npm_config_registry'] = `http://127.0.0.1:${port}/`
  up.env['npm_config_cache'] = join(up.home, 'cache')
  writeServers(up, {
    ...up.serversOf('cursor'),
    absent: { command: 'npx', args: ['-y', 'gatehouse-absent'] },
  })
  const { stdout } = await up.up('--background', '--start-timeout', '40')
  t.match(stdout, /^ {2}ready {5}files {3}1 tool$/m)
  t.match(stdout, /^ {2}skipped {3}absent: /m)
})

t.test('up: a server that is skipped in two clients counts once', async (t) => {
  const up = await makeUpHome(t, ['claude-desktop', 'cursor'])
  writeServers(up, up.serversOf('claude-desktop'))
  const { stdout } = await up.gatehouse('up', '--dry-run')
  t.match(stdout, /^Found 2 servers in Claude Desktop and Cursor\.$/m)
  t.equal(stdout.match(/not-installed-docker is not installed/g)?.length, 1)
})

t.test('up: --dry-run shows the command of the entry, without its type', async (t) => {
  const up = await makeUpHome(t, ['vscode'])
  const { stdout } = await up.gatehouse('up', '--dry-run')
  t.match(stdout, `\nThe entry runs: ${process.execPath} `)
})
