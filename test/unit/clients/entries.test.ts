/** Entries of clients in the common form: converted, reported, and unwrapped entries. */
import t from 'tap'
import { type ClientId, readEntries } from '../../../runtime/toolkit/clients/index.ts'
import { clientOfPath } from '../../../runtime/toolkit/clients/entries/read.ts'

function read(client: ClientId | 'plain', servers: unknown) {
  const keys = { vscode: 'servers', zed: 'context_servers', opencode: 'mcp', goose: 'extensions' }
  const key = keys[client as 'zed'] ?? 'mcpServers'
  const { entries } = readEntries({ file: 'x.json', client, text: JSON.stringify({ [key]: servers }) })
  return entries
}

const one = (client: ClientId | 'plain', entry: unknown) => read(client, { s: entry })[0]
t.test('entries: a URL without a type has the transport that the client would use', async (t) => {
  const transportOf = (client: ClientId, entry: unknown) => {
    const target = one(client, entry)?.target
    return target?.kind === 'remote' ? target.transport : target?.kind
  }
  t.equal(transportOf('cursor', { url: 'https://a.example/mcp' }), 'streamable-http')
  t.equal(transportOf('cursor', { url: 'https://a.example/sse?x=1' }), 'sse')
  t.equal(transportOf('cline', { url: 'https://a.example/mcp' }), 'sse')
  t.equal(transportOf('cline', { url: 'https://a.example/mcp', type: 'streamableHttp' }), 'streamable-http')
  t.equal(transportOf('gemini', { url: 'https://a.example/mcp' }), 'streamable-http')
  t.equal(transportOf('gemini', { url: 'https://a.example/sse' }), 'sse')
  t.equal(transportOf('gemini', { url: 'https://a.example/mcp', type: 'sse' }), 'sse')
  t.equal(transportOf('gemini', { httpUrl: 'https://a.example/mcp', type: 'sse' }), 'streamable-http')
  t.equal(transportOf('gemini', { httpUrl: 'https://a.example/sse' }), 'streamable-http')
  t.equal(transportOf('gemini', { url: 'https://a.example/mcp', type: 'http' }), 'streamable-http')
  t.equal(transportOf('windsurf', { serverUrl: 'https://a.example/mcp' }), 'streamable-http')
  t.equal(transportOf('opencode', { type: 'remote', url: 'https://a.example/mcp' }), 'streamable-http')
})

t.test('entries: commands in every form', async (t) => {
  const words = (client: ClientId, entry: unknown) => {
    const target = one(client, entry)?.target
    return target?.kind === 'program' ? [target.command, ...target.args].flat() : target
  }
  t.strictSame(words('cursor', { command: 'a', args: ['b', 3, true] }), ['a', 'b', '3', 'true'])
  t.strictSame(words('opencode', { type: 'local', command: ['a', 'b'] }), ['a', 'b'])
  t.strictSame(words('zed', { command: { path: 'a', args: ['b'] } }), ['a', 'b'])
})

t.test('entries: a command line instead of a command is split and reported', async (t) => {
  const entry = one('cursor', { command: 'npx -y "a b" ${env:V}' })
  t.match(entry?.target, {
    command: ['npx'],
    args: [['-y'], ['a b'], [{ kind: 'env', name: 'V' }]],
  })
  t.match(entry?.notes, [{ field: 'command', loses: false }])
  t.match(one('cursor', { command: 'My App' })?.target, { command: ['My App'], args: [] })
  t.match(one('cursor', { command: 'node', args: [] })?.notes, [])
})

t.test('entries: variables in the command of Zed, numbers and null', async (t) => {
  const entry = one('zed', {
    command: { path: 'a', args: ['b'], env: { URL: 'u', PORT: 8080 }, mystery: 1, timeout: 5 },
    env: { NONE: null, ON: true, RATE: 1.5 },
    settings: {},
  })
  t.match(entry?.target, {
    kind: 'program',
    command: ['a'],
    env: new Map([
      ['ON', ['true']],
      ['RATE', ['1.5']],
      ['URL', ['u']],
      ['PORT', ['8080']],
    ]),
  })
  t.strictSame(
    entry?.notes.map(({ field, loses }) => [field, loses]),
    [
      ['timeout', false],
      ['mystery', true],
    ],
  )
  t.match(one('zed', { command: { path: 'a', args: 'b' } })?.target, {
    kind: 'unusable',
    why: 'has a member "args" that is not a list of strings',
  })
  const id = '-1001234567890123456'
  for (const [file, text] of [
    ['x.json', `{"mcpServers":{"s":{"command":"a","args":[${id}],"env":{"ID":${id}}}}}`],
    ['x.yaml', `mcpServers: {s: {command: a, args: [${id}], env: {ID: ${id}}}}`],
    ['x.toml', `[mcp_servers.s]\ncommand = "a"\nargs = [${id}]\nenv = {ID = ${id}}`],
  ] as const) {
    const [read] = readEntries({ file, text }).entries
    t.match(read?.target, { args: [[id]], env: new Map([['ID', [id]]]) }, file)
  }
})

t.test('entries: a URL that the client ignores is reported', async (t) => {
  const entry = one('gemini', { httpUrl: 'https://a.example/mcp', url: 'https://a.example/sse' })
  t.match(entry?.target, { url: ['https://a.example/mcp'], transport: 'streamable-http' })
  t.match(entry?.notes, [
    { field: 'url', text: 'is ignored because httpUrl is set, as in the client', loses: false },
  ])
})

t.test(
  'entries: every variable reference is distinguished from text, in the syntax of its client',
  async (t) => {
    const header = (client: ClientId, value: string) => {
      const target = one(client, {
        url: 'https://a.example/mcp',
        type: client === 'opencode' ? 'remote' : 'http',
        headers: { H: value },
      })?.target
      return target?.kind === 'remote' ? target.headers.get('H') : target
    }
    const env = { kind: 'env', name: 'V' }
    t.strictSame(header('claude-code', 'a${V}b${W:-d}'), [
      'a',
      env,
      'b',
      { kind: 'env', name: 'W', fallback: 'd' },
    ])
    t.strictSame(header('claude-code', '${env:V}'), ['${env:V}'])
    t.strictSame(header('cursor', '${env:V}${V}'), [env, '${V}'])
    t.strictSame(header('vscode', 'Bearer ${input:my key}'), ['Bearer ', { kind: 'input', name: 'my key' }])
    t.strictSame(header('windsurf', '${file:/x}'), [{ kind: 'file', name: '/x' }])
    t.strictSame(header('gemini', '$V-${V}'), [env, '-', env])
    t.strictSame(header('zed', '${V}$V'), ['${V}$V'])
    t.strictSame(header('opencode', '{env:V}'), [env])
    t.strictSame(header('copilot', 'Bearer $V'), ['Bearer ', env])
    t.strictSame(header('copilot', '${V}'), [env])
    t.strictSame(header('copilot', '${V:-x}'), [{ ...env, fallback: 'x' }])
    t.strictSame(header('cline', 'Bearer ${env:V}'), ['Bearer ', env])
    t.strictSame(header('cline', '${V}'), ['${V}'])
    t.strictSame(header('vscode', '${workspaceFolder}'), [{ kind: 'place', name: 'workspaceFolder' }])
    t.strictSame(header('cursor', '${userHome}'), [{ kind: 'home', name: 'userHome' }])
  },
)

t.test('references: variables of an entry of Goose, for programs and for headers', async (t) => {
  const env = { kind: 'env', name: 'KEY' }
  const program = one('goose', { cmd: 'x', args: ['$KEY'], envs: { A: '1' }, env_keys: ['KEY'] })
  const started = program?.target.kind === 'program' ? program.target : undefined
  t.strictSame(started?.args, [['$KEY']])
  t.strictSame(started && [...started.env], [
    ['A', ['1']],
    ['KEY', [env]],
  ])
  const remote = one('goose', {
    type: 'streamable_http',
    uri: 'https://a.example/mcp',
    envs: { OWN: 'v' },
    env_keys: ['KEY'],
    headers: { Authorization: 'Bearer ${KEY}', 'X-Own': '$OWN', 'X-Other': '$OTHER' },
  })
  const target = remote?.target
  t.strictSame(target?.kind === 'remote' && [...target.headers], [
    ['Authorization', ['Bearer ', env]],
    ['X-Own', ['v']],
    ['X-Other', [{ kind: 'env', name: 'OTHER' }]],
  ])
  t.strictSame(remote?.notes, [], 'env_keys are read')
})

t.test('entries: every dropped member is reported', async (t) => {
  const entry = one('cursor', {
    command: 'a',
    cwd: '/x',
    envFile: '.env',
    timeout: 5,
    auth: { CLIENT_SECRET: 'canary' },
    mystery: 'canary',
    empty: [],
    off: false,
  })
  t.strictSame(
    entry?.notes.map(({ field, loses }) => [field, loses]),
    [
      ['timeout', false],
      ['auth', true],
      ['cwd', true],
      ['envFile', true],
      ['mystery', true],
    ],
  )
  t.notMatch(JSON.stringify(entry?.notes), 'canary')
})

t.test('entries: an entry that is not a server is reported with the reason', async (t) => {
  const cases: readonly (readonly [unknown, string])[] = [
    [5, 'is not an object'],
    [{}, 'has neither a command nor a URL'],
    [{ command: 5 }, 'has a member "command" that is not a string'],
    [{ command: 'a', args: 'b' }, 'has a member "args" that is not a list of strings'],
    [{ command: 'a', env: { A: {} } }, 'has a member "env" that is not an object with string values'],
    [{ url: 'ws://a' }, 'uses the unsupported scheme ws'],
    [{ url: 'unix:///a' }, 'uses the unsupported scheme unix'],
    [{ url: 'a.example' }, 'has a URL that does not start with http:// or https://'],
    [{ url: 'http://' }, 'has an invalid URL'],
    [{ type: 'ws', url: 'wss://a' }, 'has the unsupported type "ws"'],
    [{ type: 'stdio' }, 'has no command'],
  ]
  for (const [entry, why] of cases) t.match(one('plain', entry)?.target, { kind: 'unusable', why })
})

t.test('files: the path identifies the client of a file, otherwise the contents', async (t) => {
  const paths: Readonly<Record<string, string | undefined>> = {
    '/x/.cursor/mcp.json': 'cursor',
    '/x/.vscode/mcp.json': 'vscode',
    '/x/.mcp.json': 'claude-code',
    '.mcp.json': 'claude-code',
    'C:\\Users\\ada\\AppData\\Roaming\\Claude\\claude_desktop_config.json': 'claude-desktop',
    'claude_desktop_config.json': 'claude-desktop',
    '/x/.gemini/settings.json': 'gemini',
    '/x/.config/zed/settings.json': 'zed',
    '/x/mcp.json': undefined,
    '/x/settings.json': undefined,
    '/x/not.mcp.json': undefined,
  }
  for (const [path, client] of Object.entries(paths)) t.equal(clientOfPath(path), client, path)
  const by = (text: string, file = 'standard input') => readEntries({ file, text }).client
  t.equal(by('{"servers": {"a": {"command": "x"}}}'), 'vscode')
  t.equal(by('{"context_servers": {"a": {"command": "x"}}}'), 'zed')
  t.equal(by('{"mcp": {"a": {"type": "local", "command": ["x"]}}}'), 'opencode')
  t.equal(by('[mcp_servers.a]\ncommand = "x"\n'), 'codex')
  t.equal(by('# c\nextensions:\n  a:\n    cmd: x\n'), 'goose')
  t.equal(by('// c\n{"mcpServers": {"a": {"command": "x"}}}'), 'plain')
  t.throws(() => by('{"other": 1}'), /standard input contains no MCP servers/)
  t.throws(() => by('{"mcpServers": []}'), /"mcpServers" must be an object with one member per server/)
})

t.test(
  'files: the second version of OpenCode’s file, lists of excluded servers, projects of Claude Code',
  async (t) => {
    const opencode = { mcp: { servers: { a: { type: 'local', command: ['x'], disabled: true } } } }
    const { entries } = readEntries({ file: 'opencode.json', text: JSON.stringify(opencode) })
    t.match(entries, [{ name: 'a', enabled: false }])
    const gemini = { mcp: { excluded: ['b'] }, mcpServers: { a: { command: 'x' }, b: { command: 'y' } } }
    t.match(readEntries({ file: '/x/.gemini/settings.json', text: JSON.stringify(gemini) }).entries, [
      { enabled: true },
      { enabled: false },
    ])
    const claude = {
      mcpServers: { a: { command: 'x' } },
      projects: { '/p': { mcpServers: { a: { command: 'y' } } }, '/q': {} },
    }
    t.match(readEntries({ file: '/x/.claude.json', text: JSON.stringify(claude) }).entries, [
      { name: 'a', source: { client: 'claude-code' } },
      { name: 'a', source: { scope: 'local', within: '/p' } },
    ])
  },
)
