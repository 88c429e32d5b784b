/** The strict YAML reader: rejected input with its line, and every file of the product that it reads. */
import { writeYaml } from '../../../schemas/yaml/index.ts'
import { join } from 'node:path'
import t from 'tap'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'
import {
  loadAuthServerConfig,
  loadProxyFile,
  loadVmcpConfig,
  readYaml,
  readYamlTree,
} from '../../../runtime/config/index.ts'

/** Nine levels of nine aliases: half a billion items in a few hundred bytes. */
const aliasBomb = Array.from({ length: 9 }, (_, i) =>
  i === 0
    ? 'l0: &l0 [x, x, x, x, x, x, x, x, x]'
    : `l${i}: &l${i} [${Array(9)
        .fill(`*l${i - 1}`)
        .join(', ')}]`,
).join('\n')

/** Text, and the expected error. */
const refused: Readonly<Record<string, readonly [string, string | RegExp]>> = {
  'an alias bomb': [aliasBomb, /^\d: expands to too many nodes through aliases$/],
  'a node inside itself': ['a: 1\nb: &x [1, *x]', '2: the alias *x refers to a node that contains it'],
  'a node inside itself, often': ['a: &x [*x, *x, *x]', /refers to a node that contains it/],
  'an alias without anchor': ['a: 1\nb: *x', '2: the alias *x has no anchor before it'],
  'an anchor after its alias': ['a: *x\nb: &x 1', '1: the alias *x has no anchor before it'],
  'a repeated key': ['a: 1\nb: 2\na: 3', '3: the key "a" is repeated'],
  'a key repeated as a number': ['1: a\n"1": b', '2: the key "1" is repeated'],
  'a repeated key in JSON': ['{"a": 1,\n"b": {"c": 1, "c": 2}}', '2: the key "c" is repeated'],
  'a map as key': ['? {a: 1}\n: 2', '1: a key must be a plain value'],
  'maps as keys of maps': ['? '.repeat(60), '1: a key must be a plain value'],
  'an alias as key': ['a: &x b\n*x : 1', '2: a key must be a plain value'],
  'a key that kubectl takes for true': [
    'a: 1\ny: 2',
    '2: the key y is read as true by kubectl; put it in quotes',
  ],
  'a merge of a text': ['a: &a x\nb: {<<: *a}', '2: a merge key (<<) requires a map, or a list of maps'],
  'a merge of a list of texts': [
    'b: {<<: [{a: 1}, x]}',
    '1: a merge key (<<) requires a map, or a list of maps',
  ],
  'a merge with itself': ['b: &b {<<: *b}', '1: the alias *b refers to a node that contains it'],
  'a merge after members': [
    'a: &a {i: 1}\nb: {i: 2, <<: *a}',
    '2: a merge key (<<) must be the first key: kubectl replaces the keys before it',
  ],
  'a merge of nothing': ['b: {<<: *x}', /a merge key|has no anchor/],
  'no key': ['? \n: 2', /a key must be a plain value/],
  'a tag of another type': ['a: !!binary aGk=', /^1: Unresolved tag/],
  'a tag of a program': ['a: !!js/function f', /^1: Unresolved tag/],
  'another version': ['%YAML 1.1\n---\na: yes', '1: is YAML 1.1, not 1.2'],
  'deep lists': [`a: ${'['.repeat(101)}${']'.repeat(101)}`, '1: is nested more than 100 levels deep'],
  'deep maps': ['{a: '.repeat(300) + '}'.repeat(300), '1: is nested more than 100 levels deep'],
  'deep items': [`${'- '.repeat(300)}a`, '1: is nested more than 100 levels deep'],
  'deeper than the stack': ['['.repeat(20_000), /nested more than 100 levels deep/],
  'deep through aliases': [
    ['a0: &a0 [1]', ...Array.from({ length: 120 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]`)].join('\n'),
    /^\d+: is nested more than 100 levels deep$/,
  ],
  'a large text': ['#'.repeat(9 * 1024 * 1024), '1: is larger than 8 MiB'],
  'a syntax error': ['a: 1\nb: [1\n', /^\d: Flow sequence/],
}

t.test('yaml: rejected input is reported with its line', async (t) => {
  for (const [name, [text, expected]] of Object.entries(refused)) {
    const { documents, violations } = readYaml(text)
    const shown = violations.map(({ line, message }) => `${line}: ${message}`)
    t.match(shown[0], expected, name)
    t.ok(shown.length <= 20, `${name}: a bounded number of messages`)
    t.strictSame(documents, [], name)
  }
})

/**
 * Plain scalars that YAML 1.1 and 1.2 interpret differently, with the values that kubectl's sigs.k8s.io/yaml 1.6.0
 * reads.
 */
const plain: Readonly<Record<string, unknown>> = {
  yes: true,
  No: false,
  y: true,
  on: true,
  OFF: false,
  '~': null,
  '0644': 420,
  '0o17': 15,
  '08': 8,
  '0x1F': 31,
  '-0X1F': -31,
  '0b11': 3,
  '0B1': 1,
  '1_000': 1000,
  '1_000.5': 1000.5,
  '12e03': 12_000,
  '.5': 0.5,
  '1:30': '1:30',
  '190:20:30.5': '190:20:30.5',
  '2026-01-01': '2026-01-01',
  '2001-12-14t21:59:43.10-05:00': '2001-12-14t21:59:43.10-05:00',
  '0o8': '0o8',
  '=': '=',
}

t.test('yaml: plain scalars have the same value as in kubectl', async (t) => {
  for (const [text, expected] of Object.entries(plain))
    t.strictSame(readYaml(`a: ${text}`).documents[0]?.value, { a: expected }, text)
})

t.test('yaml: merge keys fill in the members that are not set', async (t) => {
  const read = (text: string): unknown => readYaml(text).documents[0]?.value
  const base = 'base: &b {image: x, env: {A: one}}\nmore: &m {image: w, port: 1}\n'
  t.match(read(`${base}a:\n  <<: *b\n  image: z`), { a: { image: 'z', env: { A: 'one' } } })
  t.match(read(`${base}a: {<<: [*m, *b]}`), { a: { image: 'w', port: 1, env: { A: 'one' } } })
  t.strictSame(read('a: {<<: {b: 1}, "<<": 2}'), { a: { b: 1, '<<': 2 } }, 'a quoted << is an ordinary key')
  t.strictSame(
    read('a: &a {b: 1}\nc: {<<: *a, __proto__: {d: 1}}'),
    JSON.parse('{"a":{"b":1},"c":{"b":1,"__proto__":{"d":1}}}'),
  )
  const chain = Array.from({ length: 2000 }, (_, i) => `k${i + 1}: &k${i + 1} {<<: *k${i}, m${i}: 1}`)
  t.match(
    readYaml(['k0: &k0 {a: 1}', ...chain].join('\n')).violations[0]?.message,
    /too much through aliases|levels deep/,
  )
})

t.test('yaml: a written string is the same string for kubectl and for YAML 1.2 readers', async (t) => {
  for (const text of [...Object.keys(plain), 'n', 'True', 'null', '', '0', '-', 'x: y', '#', '1e3', '.inf']) {
    const written = writeYaml({ a: [text] })
    t.strictSame(readYaml(written).documents[0]?.value, { a: [text] }, written)
    t.strictSame(readYamlTree(written).documents[0]?.toJS(), { a: [text] }, written)
    if (plain[text] !== text) t.match(written, /- ["']/, `${text} is quoted`)
  }
})

t.test('yaml: ordinary documents are accepted', async (t) => {
  const value = (text: string): unknown => {
    const { documents, violations } = readYaml(text)
    t.strictSame(violations, [], text.slice(0, 40))
    return documents.map((document) => document.value)
  }
  t.strictSame(value('a: 1\n---\nb: [x, null, true, 1.5]'), [{ a: 1 }, { b: ['x', null, true, 1.5] }])
  t.strictSame(value('{"a": {"b": [1, "two", null]}}'), [{ a: { b: [1, 'two', null] } }])
  t.strictSame(value('a: &x {k: 1}\nb: *x'), [{ a: { k: 1 }, b: { k: 1 } }])
  t.strictSame(value('"y": yes\nb: 010\ntrue: on'), [{ y: true, b: 8, true: true }])
  t.strictSame(value(`${'['.repeat(100)}${']'.repeat(100)}`), [JSON.parse('['.repeat(100) + ']'.repeat(100))])
  t.strictSame(value('%YAML 1.2\n---\na: 1'), [{ a: 1 }])
  t.strictSame(value(''), [])
  t.strictSame(
    value(['- &a x', ...Array.from({ length: 500 }, () => '- *a')].join('\n')),
    [Array(501).fill('x')],
    'many aliases with few items',
  )
})

t.test('yaml: a map with many keys is read in linear time', async (t) => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n')
  t.strictSame(readYaml(keys).violations, [])
  t.match(readYaml(`${keys}\nk0: 2`).violations, [{ line: 20_001, message: 'the key "k0" is repeated' }])
})

t.test('yaml: every file of the product is read by this reader and named in the message', async (t) => {
  const dir = t.testdir({ 'bomb.yaml': aliasBomb, 'two.yaml': 'a: 1\n---\nb: 2\n' })
  const bomb = join(dir, 'bomb.yaml')
  const two = join(dir, 'two.yaml')
  const readers = {
    vmcp: (path: string) => loadVmcpConfig(path),
    proxy: (path: string) => loadProxyFile(path),
    authserver: (path: string) => loadAuthServerConfig(path, {}),
    manifests: (path: string) => readManifests([path], () => ''),
  }
  for (const [name, read] of Object.entries(readers)) {
    t.throws(() => read(bomb), { code: 'INVALID_CONFIG', message: /bomb\.yaml[^]*through aliases/ }, name)
    if (name === 'manifests') continue
    t.throws(() => read(two), {
      code: 'INVALID_CONFIG',
      message: /two\.yaml[^]*line 3: must not contain a second document/,
    })
  }
})

t.test('manifests: every item of a List has its own line and must be a mapping', async (t) => {
  const items = readManifests(['-'], () => 'kind: List\nitems:\n- kind: A\n- kind: B\n')
  t.strictSame(
    items.map(({ line }) => line),
    [3, 4],
  )
  t.throws(() => readManifests(['-'], () => 'kind: List\nitems:\n- kind: A\n- 5\n'), {
    code: 'INVALID_CONFIG',
    message: /^-:4: a manifest must be a mapping/,
  })
})
