/**
 * `gatehouse client` adds the gateway to the file of every client. A real client connects with each entry, and removal
 * restores the files byte for byte.
 */
import { resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { makeClientHome } from '../../helpers/clients/client-home.ts'
import { argvServer, startRun } from '../../helpers/clients/run-rig.ts'
import { program } from '../../helpers/gatehouse.ts'

t.setTimeout(120_000)

const { home, clients: all, entryOf, changed, gatehouse } = makeClientHome(t)

/** Connects with an entry, as its client would. */
async function connectBy(entry: Record<string, unknown>): Promise<string[]> {
  const url = entry['httpUrl'] ?? entry['serverUrl'] ?? entry['uri'] ?? entry['url']
  const words = [entry['command'] ?? entry['cmd'], entry['args'] ?? []].flat(2)
  const [command = '', ...args] = words.map(String)
  const transport =
    typeof url === 'string'
      ? new StreamableHTTPClientTransport(new URL(url))
      : new StdioClientTransport({ command, args, env: { HOME: home, PATH: '/usr/bin:/bin' } })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools()
  await client.close()
  return tools.map(({ name }) => name)
}

const { url } = await startRun(t, ['--', ...argvServer])

await t.test(
  'client add: a real client reaches the gateway with the entry in every client’s file',
  async (t) => {
    const { code, stdout, stderr } = await gatehouse('client', 'add', ...all, '--url', url)
    t.equal(code, 0, stderr)
    t.notMatch(stdout + stderr, 'canary')
    for (const client of all) {
      const entry = entryOf(client)
      if (!entry) t.fail(`${client}: no entry`)
      else t.strictSame(await connectBy(entry), ['start'], client)
    }
  },
)

await t.test('client add: each entry has the format of its client', async (t) => {
  const http = { type: 'http', url }
  const expected: Readonly<Record<string, object>> = {
    'claude-desktop': { command: process.execPath, args: [resolve(program), 'proxy', 'stdio', url] },
    'claude-code': http,
    cursor: { url },
    vscode: http,
    copilot: { ...http, tools: ['*'] },
    windsurf: { serverUrl: url },
    codex: { url },
    gemini: { httpUrl: url },
    zed: { url },
    cline: { type: 'streamableHttp', url },
    goose: { enabled: true, type: 'streamable_http', name: 'gatehouse', uri: url },
    opencode: { type: 'remote', url, enabled: true },
    junie: { url },
  }
  for (const [client, entry] of Object.entries(expected)) {
    const found = entryOf(client)
    if (client === 'goose') t.match(found, entry, client)
    else t.strictSame({ ...found }, entry, client)
  }
})

await t.test('client status: shows where the entry is, and checks the gateway', async (t) => {
  const { stdout, code } = await gatehouse('client', 'status', '--check', '-o', 'json')
  t.equal(code, 0)
  t.notMatch(stdout, 'canary')
  const rows = JSON.parse(stdout) as { client: string; state: string; url?: string; response?: string }[]
  for (const client of all) {
    t.match(
      rows.find((row) => row.client === client),
      { state: 'connected', url, response: 'responds as gatehouse' },
      client,
    )
  }
})

await t.test('client remove: restores every file byte for byte', async (t) => {
  const { code, stderr } = await gatehouse('client', 'remove', ...all)
  t.equal(code, 0, stderr)
  t.strictSame(changed(), [])
})

await t.test('client undo: reverts the removal, then the addition', async (t) => {
  await gatehouse('client', 'undo', 'cursor', 'codex', 'goose')
  for (const client of ['cursor', 'codex', 'goose']) t.ok(entryOf(client), client)
  await gatehouse('client', 'undo', 'cursor', 'codex', 'goose')
  t.strictSame(changed(), [])
})

await t.test('client add: writes gatehouse proxy stdio, with a reference to the token', async (t) => {
  const { code, stderr } = await gatehouse(
    'client',
    'add',
    'zed',
    'goose',
    'opencode',
    '--stdio',
    '--url',
    url,
  )
  t.equal(code, 0, stderr)
  for (const client of ['zed', 'goose'])
    t.strictSame(await connectBy(entryOf(client) ?? {}), ['start'], client)
  t.match(entryOf('opencode'), {
    type: 'local',
    command: [process.execPath, resolve(program), 'proxy', 'stdio', url],
  })
  await gatehouse('client', 'remove', 'zed', 'goose', 'opencode')
  const token = await gatehouse(
    'client',
    'add',
    'claude-code',
    'cursor',
    'codex',
    'gemini',
    'zed',
    '--bearer-env',
    'TEAM_TOKEN',
  )
  t.equal(token.code, 1)
  t.match(token.stderr, /Zed: --bearer-env: Zed does not support variables/)
  t.match(entryOf('claude-code'), { headers: { Authorization: 'Bearer ${TEAM_TOKEN}' } })
  t.match(entryOf('cursor'), { headers: { Authorization: 'Bearer ${env:TEAM_TOKEN}' } })
  t.match(entryOf('codex'), { bearer_token_env_var: 'TEAM_TOKEN' })
  t.match(entryOf('gemini'), { headers: { Authorization: 'Bearer ${TEAM_TOKEN}' } })
  await gatehouse('client', 'remove', 'claude-code', 'cursor', 'codex', 'gemini')
  t.strictSame(changed(), [])
})
