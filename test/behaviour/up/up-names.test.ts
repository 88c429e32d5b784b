/** The servers of `gatehouse up` as targets of other commands, which get the token from the session's file. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { makeUpHome, type UpHome } from '../../helpers/up/up-home.ts'
import { untyped } from '../../helpers/untyped.ts'

t.setTimeout(300_000)

/** The tools that a client sees through an entry that starts a program. */
async function toolsThrough(up: UpHome, entry: unknown): Promise<readonly string[]> {
  const { command, args } = untyped(entry)
  const client = new Client({ name: 'cursor', version: '1' })
  const env = { ...up.env } as Record<string, string>
  await client.connect(new StdioClientTransport({ command, args, env }))
  const { tools } = await client.listTools()
  await client.close()
  return tools.map(({ name }) => name)
}

t.test('up: the other commands accept the names of its servers', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.equal((await up.up('--background')).code, 0)
  for (const name of ['gatehouse', 'files']) {
    const tools = await up.gatehouse('tools', 'list', name)
    t.match(tools, { code: 0, stderr: '' }, name)
    t.match(tools.stdout, /start/)
    const doctor = await up.gatehouse('doctor', name)
    t.match(doctor, { code: 0 }, `${name}: ${doctor.stdout}${doctor.stderr}`)
    const locked = await up.gatehouse('lock', name)
    t.match(locked, { code: 0, stderr: '' }, name)
    t.match(locked.stdout, /kind: MCPToolLock[\s\S]*name: files[\s\S]*name: start/)
  }
  const url = await up.gatehouse('tools', 'call', up.url, 'files_start')
  t.equal(url.code, 0, 'the address of its own user works as well')
  t.match((await up.gatehouse('logs', 'files')).stdout, /files/)
  const explained = await up.gatehouse('explain', 'gatehouse', '--tool', 'files_start')
  t.match(explained, { code: 0, stdout: /the item can be used/ })

  for (const command of ['tools list', 'doctor', 'logs', 'restart', 'lock', 'client add cursor --server']) {
    const { stderr } = await up.gatehouse(...command.split(' '), 'fils')
    t.match(stderr, /did you mean files\? \w/, command)
  }
  for (const command of [['restart'], ['logs'], ['proxy', 'stdio']]) {
    const { stdout } = await up.gatehouse('__complete', '--', ...command, 'fi')
    t.equal(stdout, 'files\t\n', `completion of ${command.join(' ')}`)
  }
  for (const name of ['..', '%2e%2e', 'a/b', ''])
    t.match(await up.gatehouse('restart', name), { code: 2, stderr: /no running server .*servers: files$/im })
  t.match(await up.gatehouse('restart'), { code: 2, stderr: /NAME is missing; servers: files$/m })

  up.env['TMPDIR'] = t.testdir({})
  t.match(
    await up.gatehouse('tools', 'list', up.url),
    { code: 3 },
    'a program that cannot read the session’s file is rejected',
  )
})

t.test('up: client add writes entries that reach its servers, without a token', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.equal((await up.up('--background')).code, 0)
  for (const [name, options, target, tool] of [
    ['direct', ['--server', 'files'], 'files', 'start'],
    ['entrance', ['--server', 'gatehouse'], up.url, 'files_start'],
    ['address', ['--url', up.url], up.url, 'files_start'],
  ] as const) {
    const added = await up.gatehouse('client', 'add', 'cursor', '--name', name, ...options)
    t.match(added, { code: 0, stderr: '' }, name)
    const entry = untyped(up.serversOf('cursor')[name])
    t.strictSame(entry.args.slice(1), ['proxy', 'stdio', target], 'no login, and no token')
    t.strictSame(await toolsThrough(up, entry), [tool], name)
  }
  const status = await up.gatehouse('client', 'status', 'cursor', '--check')
  t.match(
    status.stdout,
    /connected .*\n.*responds as gatehouse {2}by gatehouse up; gatehouse down removes it/,
  )
  for (const command of ['add', 'remove'])
    t.match(await up.gatehouse('client', command, 'cursor'), {
      code: 1,
      stderr: /gatehouse up has connected Cursor: run gatehouse down first/,
    })

  const { origin, hash } = new URL(JSON.parse((await up.gatehouse('status', '--json')).stdout).console)
  const headers = { 'x-gatehouse-launch': hash.replace('#launch=', '') }
  const connect = untyped(await (await fetch(`${origin}/api/v1/connect`, { headers })).json())
  t.equal(connect.isLocalOnly, true)
  for (const { id, add, command = '', link } of connect.clients) {
    if (id === 'other') t.equal(command, `gatehouse proxy stdio ${up.url}`)
    else
      t.strictSame(
        [add, command, link],
        [`gatehouse client add ${id} --name gatehouse --url ${up.url}`, '', undefined],
      )
  }
  t.equal((await up.gatehouse('down')).code, 0)
  t.notOk(up.serversOf('cursor')['gatehouse'])
  t.ok(up.serversOf('cursor')['files'])
})
