/** Adding an entry to TOML and YAML and removing it again keeps every other byte. */
import { parse as parseToml } from 'smol-toml'
import t from 'tap'
import { applyChanges, invertChanges } from '../../../runtime/toolkit/clients/edit/changes.ts'
import { dropEntry, putEntry } from '../../../runtime/toolkit/clients/edit/edit.ts'
import { scanToml } from '../../../runtime/toolkit/clients/edit/toml-scan.ts'

const toml = (text: string) =>
  ({ format: 'toml', text, path: ['mcp_servers', 'gatehouse'], file: 'config.toml' }) as const
const yaml = (text: string) =>
  ({ format: 'yaml', text, path: ['extensions', 'gatehouse'], file: 'config.yaml' }) as const
const url = 'http://127.0.0.1:4483/mcp'
const block = `[mcp_servers.gatehouse]\nurl = "${url}"\n`

const tomlGolden: Readonly<Record<string, readonly [string, string]>> = {
  'an empty file': ['', block],
  'no line end at the end': ['model = "x"', `model = "x"\n\n${block}`],
  CRLF: ['model = "x"\r\n', `model = "x"\r\n\r\n${block.replaceAll('\n', '\r\n')}`],
  'comments, lists over lines, and headers inside of strings': [
    '# c\n[mcp_servers.a]\nargs = ["x", # [mcp_servers.gatehouse]\n "]"]\nnote = """\n[mcp_servers.gatehouse]\n"""\n\n# end\n[t] # t\n',
    `# c\n[mcp_servers.a]\nargs = ["x", # [mcp_servers.gatehouse]\n "]"]\nnote = """\n[mcp_servers.gatehouse]\n"""\n\n# end\n[t] # t\n\n${block}`,
  ],
}

t.test('toml: a new table is added at the end, and removed without a trace', async (t) => {
  for (const [name, [before, after]] of Object.entries(tomlGolden)) {
    const edit = putEntry(toml(before), { url })
    t.equal(edit.text, after, name)
    t.equal(applyChanges(edit.text, invertChanges(edit.changes)), before, `${name}: undone`)
    if (before.endsWith('\n')) t.equal(dropEntry(toml(after)).text, before, `${name}: removed`)
  }
})

t.test('toml: a table in the middle is removed with its sub-tables, and replaced in place', async (t) => {
  const before = `[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers.gatehouse]\nurl = "old"\n[mcp_servers.gatehouse.env]\nX = '''\n[b]\n'''\n\n# of b\n[mcp_servers.b]\ncommand = "b"\n`
  t.equal(
    dropEntry(toml(before)).text,
    '[mcp_servers.a]\ncommand = "a"\n\n# of b\n[mcp_servers.b]\ncommand = "b"\n',
  )
  const edit = putEntry(toml(before), { url })
  t.equal(edit.text, `[mcp_servers.a]\ncommand = "a"\n\n${block}\n# of b\n[mcp_servers.b]\ncommand = "b"\n`)
  t.equal(applyChanges(edit.text, invertChanges(edit.changes)), before)
})

t.test('toml: a file that a new header would contradict is rejected', async (t) => {
  const cases: Readonly<Record<string, readonly [string, RegExp]>> = {
    'an inline map': [
      'x = 1\nmcp_servers = { a = { command = "x" } }\n',
      /^config\.toml:2: mcp_servers is written inline/,
    ],
    'dotted keys': [
      'mcp_servers.a.command = "x"\n',
      /^config\.toml:1: mcp_servers is written inline or with dotted keys/,
    ],
    'an inline entry': [
      '[mcp_servers]\na = { command = "x" }\n',
      /^config\.toml:2: mcp_servers is written inline/,
    ],
    'a table in two places': [
      '[mcp_servers.gatehouse]\nurl = "x"\n[t]\n[mcp_servers.gatehouse.env]\nA = "b"\n',
      /^config\.toml:4: \[mcp_servers\.gatehouse\.env\] is separated from its parent table/,
    ],
    'a half-written file': ['[mcp_servers.a]\ncommand = "np', /^config\.toml:2:\d+: not valid TOML: /],
    'a repeated key': ['a = 1\na = 2\n', /^config\.toml:2:\d+: not valid TOML: /],
  }
  for (const [name, [text, message]] of Object.entries(cases)) {
    t.throws(() => putEntry(toml(text), { url }), { code: 'INVALID_CONFIG', message }, name)
  }
})

t.test('toml: every statement is found, with any form of value', async (t) => {
  const text = [
    'bare-key = 1',
    '"quoted key" = true # c',
    '\'literal\' . "dotted" = 1979-05-27 07:32:00',
    'uni = "a \\u00e9 \\" b"',
    "lit = 'a \\'",
    'long = """\nx "" y """""',
    "llong = '''\nx '' y '''''",
    'list = [ [1, 2], ["]", \'[\', """]"""], { a = "}" } ]',
    'inf = -inf',
    '[a."b.c".d] # c',
    'x = 1',
    '[[ lists . of ]]',
    'y = 2',
  ].join('\n')
  parseToml(text)
  const found = scanToml(text).map(({ kind, path }) => [kind, path])
  t.strictSame(found, [
    ['pair', ['bare-key']],
    ['pair', ['quoted key']],
    ['pair', ['literal', 'dotted']],
    ['pair', ['uni']],
    ['pair', ['lit']],
    ['pair', ['long']],
    ['pair', ['llong']],
    ['pair', ['list']],
    ['pair', ['inf']],
    ['table', ['a', 'b.c', 'd']],
    ['pair', ['x']],
    ['list-of-tables', ['lists', 'of']],
    ['pair', ['y']],
  ])
})

const extension = { enabled: true, type: 'streamable_http', uri: url }
const lines = (indent: string, end = '\n') =>
  ['  gatehouse:', '    enabled: true', '    type: streamable_http', `    uri: ${url}`]
    .map((line) => `${indent}${line.slice(2)}${end}`)
    .join('')

const yamlGolden: Readonly<Record<string, readonly [string, string]>> = {
  'no map of extensions': ['a: 1\n', `a: 1\nextensions:\n${lines('  ')}`],
  'a key without a value': ['extensions: # c\n# d\nz: 1\n', `extensions: # c\n${lines('  ')}# d\nz: 1\n`],
  'comments, lists over lines and block texts': [
    'extensions:\n  dev:\n    args: [a,\n      b] # c\n    note: |\n      x\n      y\n\n# tail\nz: 1\n',
    `extensions:\n  dev:\n    args: [a,\n      b] # c\n    note: |\n      x\n      y\n${lines('  ')}\n# tail\nz: 1\n`,
  ],
  'a text that keeps its blank lines': [
    'extensions:\n  a:\n    t: |+\n      x\n\n\nz: 1\n',
    `extensions:\n  a:\n    t: |+\n      x\n\n\n${lines('  ')}z: 1\n`,
  ],
  'CRLF and another indent': [
    'extensions:\r\n    dev:\r\n        enabled: true # c\r\nz: 1\r\n',
    `extensions:\r\n    dev:\r\n        enabled: true # c\r\n${lines('    ', '\r\n')}z: 1\r\n`,
  ],
}

t.test('yaml: a new member is added at the end of its map, and removed without a trace', async (t) => {
  for (const [name, [before, after]] of Object.entries(yamlGolden)) {
    const edit = putEntry(yaml(before), extension)
    t.equal(edit.text, after, name)
    t.equal(applyChanges(edit.text, invertChanges(edit.changes)), before, `${name}: undone`)
  }
  const [, before] = yamlGolden['comments, lists over lines and block texts'] ?? []
  t.equal(dropEntry(yaml(before ?? '')).text, yamlGolden['comments, lists over lines and block texts']?.[0])
})

t.test('yaml: a file that cannot be edited by lines is rejected', async (t) => {
  const cases: Readonly<Record<string, readonly [string, RegExp]>> = {
    'a map in flow style': ['extensions: {a: {b: 1}}\n', /^config\.yaml:1: this map is in flow style/],
    'an alias': [
      'a: &x\n  b: 1\nextensions: *x\n',
      /^config\.yaml:3: "extensions" must be a map, not an alias$/,
    ],
    'a list': ['extensions:\n  - a\n', /"extensions" must be a map$/],
    'a list at the top': ['- a\n', /^config\.yaml must contain a map at the top level$/],
    'two documents': ['a: 1\n---\nb: 2\n', /^config\.yaml contains several YAML documents/],
    'a repeated key': ['a: 1\na: 2\n', /^config\.yaml:2: not valid YAML: the key "a" is repeated$/],
    'a half-written file': ['extensions:\n  a: [1,\n', /^config\.yaml:\d+: not valid YAML: /],
    'too deep': [`a: ${'['.repeat(300)}${']'.repeat(300)}`, /not valid YAML: is nested/],
  }
  for (const [name, [text, message]] of Object.entries(cases)) {
    t.throws(() => putEntry(yaml(text), extension), { code: 'INVALID_CONFIG', message }, name)
  }
})

t.test('toml: an entry is removed with the table created for it, next to settings at the top', async (t) => {
  const path = ['mcp_servers', 'gatehouse']
  const before = 'model = "o3"\nwhen = 1979-05-27 07:32:00\n\n[profiles.x]\nmodel = "o4"\n'
  const added = putEntry(
    { format: 'toml', text: before, path, file: 'config.toml' },
    { url: 'http://127.0.0.1/mcp' },
  )
  t.equal(dropEntry({ format: 'toml', text: added.text, path, file: 'config.toml' }, 1).text, before)
  const inline = 'mcp_servers.gatehouse.url = "x"\n'
  t.throws(
    () => dropEntry({ format: 'toml', text: inline, path, file: 'config.toml' }, 1),
    /\[mcp_servers\.NAME\]/,
  )
})
