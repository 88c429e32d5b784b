/** `gatehouse import`: broken, unusual or hostile files, and invalid flags. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { thisHost } from '../../../runtime/toolkit/client-files/host.ts'
import { type ImportOptions, importServers } from '../../../runtime/tools/clients/import.ts'
import { reportLines, reportObject } from '../../../runtime/tools/clients/report.ts'
import { readSources } from '../../../runtime/toolkit/client-files/sources.ts'
import { painter } from '../../../runtime/toolkit/terminal/output.ts'
import { convertEntries } from '../../../runtime/toolkit/clients/index.ts'
import { validateResource } from '../../../hooks/index.ts'

const aliasBomb = Array.from(
  { length: 30 },
  (_, i) => `b${i}: &b${i} [*${i ? `b${i - 1}` : 'a'}, *${i ? `b${i - 1}` : 'a'}]`,
)

t.test(
  'import: an unreadable file is reported with its location, and the other files are read',
  async (t) => {
    const folder = t.testdir({})
    const place = (name: string, text: string | Buffer) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const good = place('good.json', '{"mcpServers": {"a": {"command": "x"}}}')
    mkdirSync(join(folder, 'dir.json'))
    const bad: Readonly<Record<string, readonly [string, RegExp]>> = {
      'half-written JSON': [
        place('half.json', '{"mcpServers": {"a": {"comm'),
        /half\.json:1:\d+: not valid JSON/,
      ],
      'broken TOML': [
        place('config.toml', '[mcp_servers.a]\ncommand = "x'),
        /config\.toml:2:\d+: not valid TOML/,
      ],
      'broken YAML': [place('config.yaml', 'extensions:\n  a: [1'), /config\.yaml:\d+: not valid YAML/],
      'an alias bomb': [
        place('bomb.yaml', `a: &a [x]\n${aliasBomb.join('\n')}\n`),
        /expands to too many nodes through aliases/,
      ],
      huge: [place('huge.json', Buffer.alloc(9 * 1024 * 1024, 0x20)), /larger than 8 MiB/],
      deep: [place('deep.json', '['.repeat(100_000)), /nested deeper/],
      binary: [place('binary.json', Buffer.from([0, 0xff, 0xfe, 1])), /not valid UTF-8/],
      'blank lines without end': [
        place('blank.conf', `${'\n'.repeat(1_000_000)}x`),
        /must contain a map at the top|contains no MCP servers|must contain an object/,
      ],
      empty: [place('empty.json', ''), /contains no MCP servers/],
      'a folder': [join(folder, 'dir.json'), /is a folder, not a file/],
    }
    const words = [good, ...Object.values(bad).map(([file]) => file)]
    const [first, ...others] = await readSources(words, thisHost(folder), undefined)
    t.match(first, { error: undefined, entries: [{ name: 'a' }] })
    for (const [index, [name, [, message]]] of Object.entries(bad).entries())
      t.match(others[index]?.error, message, name)
    symlinkSync('nowhere', join(folder, 'gone.json'))
    await t.rejects(readSources(['gone.json'], thisHost(folder), undefined), /gone\.json: no such file/)
    await t.rejects(
      readSources(['nobody'], thisHost(folder), undefined),
      /nobody: no such client or file\. Known clients: claude-desktop/,
    )
    await t.rejects(
      readSources(['cusror'], thisHost(folder), undefined),
      /cusror: no such client or file; did you mean cursor\?/,
    )
  },
)

t.test('import: names from a file are escaped for terminals, and cannot become object members', async (t) => {
  const folder = t.testdir({
    'x.json':
      '{"mcpServers": {"\\u001b[31mred\\n": {"command": "x", "\\u001b[2J": 1}, "remote": {"url": "https://mcp.example/mcp", "headers": {"X-\\u001b[31mRed": "v"}}, "__proto__": {"command": "y"}, "constructor": {"command": "z"}}}',
  })
  const sources = await readSources(['x.json'], thisHost(folder), undefined)
  const conversion = convertEntries(
    sources.flatMap(({ entries }) => entries),
    {
      group: 'g',
      description: 'd',
      incoming: { type: 'anonymous' },
      secrets: 'manifest',
      plain: new Set(),
      images: new Map(),
      keepSecretArgs: false,
      includeDisabled: false,
      allowLoopback: false,
      prefixOne: true,
      resolve: () => undefined,
      home: '/h',
      violationsOf: (manifest) => validateResource(manifest).violations,
    },
  )
  const text = reportLines(sources, conversion, thisHost(folder), painter({ colour: false })).join('\n')
  t.equal(text.includes('\u001b'), false)
  t.match(text, /imported {3}__proto__ +MCPServer\/proto/)
  t.match(text, /header X-\?\[31mRed: cannot be forwarded/)
  t.match(text, /imported {3}constructor +MCPServer\/constructor/)
  t.match(
    reportObject(sources, conversion, []).servers,
    [{ name: '\u001b[31mred\n' }],
    'JSON has the name itself',
  )
})

const defaults: ImportOptions = {
  force: false,
  output: 'text',
  group: 'imported',
  target: 'dev',
  secrets: 'manifest',
  plain: [],
  image: [],
  keepSecretArgs: false,
  resolveEnv: false,
  includeDisabled: false,
}

t.test('import: invalid flags are rejected before anything is read', async (t) => {
  const cases: readonly (readonly [Partial<ImportOptions>, RegExp])[] = [
    [{ target: 'cluster' }, /^--target cluster: requires --oidc-config NAME and --audience AUDIENCE/],
    [{ image: ['x'] }, /^--image: must be NAME=IMAGE/],
    [{ group: 'Not A Name' }, /^--group: must be a name/],
    [{ as: 'cusror' }, /^cusror: no such client; did you mean cursor\?/],
  ]
  for (const [given, message] of cases) {
    await t.rejects(importServers(['/dev/null'], { ...defaults, ...given }), {
      code: 'INVALID_CONFIG',
      message,
    })
  }
})

t.test('import: an option with an unknown name is rejected, and nothing is written', async (t) => {
  const folder = t.testdir({ 'x.json': '{"mcpServers": {"a": {"command": "x", "env": {"MODE": "on"}}}}' })
  const options = { ...defaults, output: 'json', save: join(folder, 'out') } as const
  const words = [join(folder, 'x.json')]
  await t.rejects(importServers(words, { ...options, image: ['b=img:1'] }), /^--image: there is no server b$/)
  await t.rejects(
    importServers(words, { ...options, plain: ['MODUS'] }),
    /^--plain: no server has a variable MODUS$/,
  )
  t.notOk(existsSync(options.save))
})
