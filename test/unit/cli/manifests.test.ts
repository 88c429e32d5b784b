import t from 'tap'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'

const none = () => ''

t.test('manifests: documents keep the file and line of each field', async (t) => {
  const dir = t.testdir({
    'a.yaml':
      'kind: A\nmetadata:\n  name: x\n---\n# comment\nkind: B\nspec:\n  list:\n    - one: 1\n    - two: 2\n',
    'b.json': '{"kind":"C"}',
    'kustomization.yaml': 'kind: Kustomization\n',
    'notes.txt': 'not a manifest',
    '.hidden.yaml': 'kind: Hidden\n',
    deep: { 'd.yml': 'kind: D\n' },
  })
  const manifests = readManifests([dir], none)
  t.same(
    manifests.map(({ doc }) => doc['kind']),
    ['A', 'B', 'C', 'D'],
  )
  t.equal(manifests[1]?.line, 6)
  t.equal(manifests[1]?.lineOf('spec.list[1].two'), 10)
  t.equal(manifests[1]?.lineOf('spec.missing'), 8, 'the nearest existing folder')
})

t.test('manifests: a List is split into its items, and a dash reads standard input', async (t) => {
  const text = 'kind: List\nitems:\n- kind: A\n- kind: B\n'
  t.same(
    readManifests(['-'], () => text).map(({ doc, file }) => [doc['kind'], file]),
    [
      ['A', '-'],
      ['B', '-'],
    ],
  )
})

t.test('manifests: errors name file and line', async (t) => {
  const dir = t.testdir({ 'bad.yaml': 'a: 1\nb: [1\n', 'list.yaml': '- a\n', empty: {} })
  t.throws(() => readManifests([`${dir}/bad.yaml`], none), /bad\.yaml:\d+: not valid YAML/)
  t.throws(() => readManifests([`${dir}/list.yaml`], none), /list\.yaml:1: a manifest must be a mapping/)
  t.throws(() => readManifests([`${dir}/empty`], none), /no \.yaml, \.yml or \.json file/)
  t.throws(() => readManifests([`${dir}/absent`], none), /no such file or folder/)
})

t.test(
  'manifests: a path without a document is an error, because the command that produced it may have failed',
  async (t) => {
    const dir = t.testdir({ 'empty.yaml': '', 'comments.yaml': '# nothing\n---\n', 'a.yaml': 'kind: A\n' })
    t.equal(readManifests([dir], none).length, 1, 'in a folder with other documents it is not an error')
    t.throws(() => readManifests([`${dir}/empty.yaml`, `${dir}/a.yaml`, `${dir}/comments.yaml`, '-'], none), {
      code: 'INVALID_CONFIG',
      message:
        /empty\.yaml: contains no documents\n.*comments\.yaml: contains no documents\n-: contains no documents$/,
    })
    t.throws(() => readManifests(['-'], () => 'kind: List\nitems: []\n'), {
      message: '-: contains no documents',
    })
  },
)

t.test('manifests: all unreadable files and documents are reported at once', async (t) => {
  const dir = t.testdir({
    'a.yaml': 'kind: A\n---\n- 1\n---\njust text\n',
    'b.yaml': 'kind: B\n\tapiVersion: x\n',
    'c.yaml': 'kind: List\nitems:\n- 5\n',
    loop: t.fixture('symlink', 'loop'),
  })
  const error = t.throws(() => readManifests([dir], none), { code: 'INVALID_CONFIG' }) as Error
  t.same(
    error.message.split('\n').map((line) => /(.\.yaml:\d+): (.{12})/.exec(line)?.slice(1)),
    [
      ['a.yaml:3', 'a manifest m'],
      ['a.yaml:5', 'a manifest m'],
      ['b.yaml:2', 'not valid YA'],
      ['c.yaml:3', 'a manifest m'],
    ],
  )
  t.throws(() => readManifests([`${dir}/loop`], none), {
    code: 'INVALID_CONFIG',
    message: /loop: cannot be read: too many symbolic links$/,
  })
})

t.test('manifests: UTF-16, as written by PowerShell 5, is reported', async (t) => {
  const dir = t.testdir({ 'w.yaml': Buffer.from('\ufeffkind: A\n', 'utf16le') })
  t.throws(() => readManifests([`${dir}/w.yaml`], none), {
    code: 'INVALID_CONFIG',
    message: /w\.yaml: is UTF-16; save it as UTF-8$/,
  })
})
