/** `gatehouse import toolhive` converts files and cluster objects to manifests that are valid and render. */
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import t, { type Test as Tap } from 'tap'
import { parseAllDocuments } from 'yaml'
import { runGatehouse } from '../helpers/gatehouse.ts'
import { kubeMissing, startKubeApiserver } from '../helpers/kube/apiserver.ts'
import { untyped } from '../helpers/untyped.ts'

t.setTimeout(600_000)

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-toolhive-')))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

const group = 'toolhive.stacklok.dev'
const team = `apiVersion: ${group}/v1beta1
kind: MCPGroup
metadata: { name: team }
spec: { description: What the team uses }
---
apiVersion: ${group}/v1alpha1
kind: MCPServer
metadata: { name: notes }
spec:
  groupRef: { name: team }
  image: npx://@example/notes@1.2.3
  tools: [read]
---
apiVersion: ${group}/v1beta1
kind: VirtualMCPServer
metadata: { name: desk }
spec:
  groupRef: { name: team }
  incomingAuth: { type: anonymous }
  config:
    aggregation: { conflictResolution: prefix }
`
const withSecret = `apiVersion: v1
kind: Secret
metadata: { name: key }
stringData: { token: hush-hush }
---
apiVersion: ${group}/v1beta1
kind: MCPServer
metadata: { name: guarded }
spec: { image: example/notes:1, transport: sse, oidcConfig: { type: configMap, configMap: { name: c } } }
`

t.test('import toolhive: converts a folder to a folder that is valid and renders', async (t) => {
  const source = mkdtempSync(join(folder, 'source-'))
  writeFileSync(join(source, 'team.yml'), team)
  const target = join(folder, 'converted')
  const told = await runGatehouse(['import', 'toolhive', '-f', source])
  t.equal(told.code, 0, told.stderr)
  t.match(told.stdout, /differs +MCPServer\/notes, with MCPToolConfig\/notes-tools/)
  t.match(told.stdout, /11: spec\.image: is not built into an image/, 'the line in the source')
  t.match(told.stdout, /2 converted, 1 differs\n.*--save FOLDER/)
  t.throws(() => statSync(target), 'writes no file without --save')

  const saved = await runGatehouse(['import', 'toolhive', '-f', source, '--save', target, '-o', 'json'])
  t.same(untyped(JSON.parse(saved.stdout)).written, ['team.yaml'])
  for (const command of ['validate', 'render']) {
    const ran = await runGatehouse([command, '-f', target])
    t.equal(ran.code, 0, `${command}: ${ran.stderr}`)
  }
  const again = await runGatehouse(['import', 'toolhive', '-f', source, '--save', target, '-o', 'json'])
  t.same(untyped(JSON.parse(again.stdout)).written, [], 'the same input produces the same bytes')
})

t.test(
  'import toolhive: does not write unconverted objects, and reports them by the exit code',
  async (t) => {
    const source = mkdtempSync(join(folder, 'source-'))
    writeFileSync(join(source, 'guarded.yaml'), withSecret)
    const target = join(folder, 'guarded')
    const ran = await runGatehouse(['import', 'toolhive', '-f', source, '--save', target])
    t.equal(ran.code, 1)
    t.match(ran.stdout, /not converted +MCPServer\/guarded\n +refused +9: spec\.oidcConfig/)
    t.notMatch(ran.stdout, /hush/)
    const file = join(target, 'guarded.yaml')
    t.match(readFileSync(file, 'utf8'), /kind: Secret/)
    t.notMatch(readFileSync(file, 'utf8'), /MCPServer/)
    t.equal(statSync(file).mode & 0o777, 0o600, 'only the owner can read a file with a Secret')
    t.match(readFileSync(join(target, '.gitignore'), 'utf8'), /guarded\.yaml/)
  },
)

t.test('import toolhive: uses standard input and output, and rejects wrong usage', async (t) => {
  const ran = await runGatehouse(['import', 'toolhive', '-f', '-', '-o', 'yaml'], team)
  t.equal(ran.code, 0)
  t.match(ran.stderr, /2 converted, 1 differs/, "the report is not in the manifests' stream")
  const checked = await runGatehouse(['validate', '-f', '-'], ran.stdout)
  t.equal(checked.code, 0, checked.stderr)
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /specify -f FILE, or --context/],
    [['-f', '-', '-n', 'a'], /--namespace: requires --context/],
    [['-f', '-', '--tool', 'echo'], /--tool: must be NAME=BACKEND\.TOOL/],
    [['-f', join(folder, 'absent')], /no such file or folder/],
  ]
  for (const [args, message] of cases) {
    const refused = await runGatehouse(['import', 'toolhive', ...args], team)
    t.equal(refused.code, 2)
    t.match(refused.stderr, message)
  }
})

await t.test('import toolhive: reads from a cluster', { skip: kubeMissing() }, async (t) => {
  const kube = await startKubeApiserver(t)
  for (const [kind, plural] of [
    ['MCPGroup', 'mcpgroups'],
    ['MCPServer', 'mcpservers'],
  ] as const) {
    kube.must(['apply', '-f', '-'], JSON.stringify(definition(kind, plural)))
  }
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  const object = (kind: string, namespace: string, spec: object) => {
    const metadata = { name: 'notes', namespace }
    kube.must(['apply', '-f', '-'], JSON.stringify({ apiVersion: `${group}/v1beta1`, kind, metadata, spec }))
  }
  kube.must(['create', 'namespace', 'other'])
  object('MCPServer', 'default', { image: 'example/notes:1', transport: 'sse' })
  object('MCPServer', 'other', { image: 'example/notes:2', transport: 'sse' })
  object('MCPGroup', 'default', { description: 'd' })
  const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kube.kubeconfig }
  const read = async (...args: readonly string[]) =>
    runGatehouse(['import', 'toolhive', '--context', ...args, '-o', 'json'], '', env)
  const all = await read()
  t.equal(all.code, 0, all.stderr)
  t.same(
    untyped(JSON.parse(all.stdout)).documents.map(({ file, subject, outcome }: Record<string, string>) => [
      file,
      subject,
      outcome,
    ]),
    [
      ['default', 'MCPGroup/notes', 'converted'],
      ['default', 'MCPServer/notes', 'converted'],
      ['other', 'MCPServer/notes', 'converted'],
    ],
  )
  const target = join(folder, 'from-cluster')
  const one = await read('-n', 'other', '--save', target)
  t.same(untyped(JSON.parse(one.stdout)).written, ['other.yaml'])
  t.notMatch(readFileSync(join(target, 'other.yaml'), 'utf8'), /uid|managedFields|last-applied/)
  t.equal((await runGatehouse(['validate', '-f', target])).code, 0)
  const absent = await runGatehouse(['import', 'toolhive', '--context', 'nowhere'], '', env)
  t.equal(absent.code, 2)
  t.match(absent.stderr, /--context: no context nowhere/)
})

/** Returns a definition for a kind of the other group that allows any fields. */
function definition(kind: string, plural: string) {
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1beta1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: anything } } },
        },
      ],
    },
  }
}

/** Path of a ToolHive checkout, if there is one. This repository contains none of its files. */
const checkout = process.env['GATEHOUSE_TEST_TOOLHIVE']
/** Tools that steps of two of its workflows mean; its files do not contain this mapping. */
const stepTools = ['fetch=fetch.fetch', 'echo=yardstick-sse.echo', 'add=yardstick-sse.add'].concat(
  'longecho=yardstick-sse.longecho',
  'sampleLLM=yardstick-sse.sampleLLM',
)

t.test(
  'import toolhive: every example of ToolHive converts, is valid and renders',
  { skip: checkout === undefined && 'GATEHOUSE_TEST_TOOLHIVE names no checkout' },
  async (t) => {
    const examples = join(checkout ?? '', 'examples/operator')
    const files = readdirSync(examples, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.yaml'),
    )
    t.ok(files.length > 40, `${files.length} files`)
    const kube = kubeMissing() === false ? await apiServerWithKinds(t) : undefined
    for (const file of files.toSorted()) {
      const target = mkdtempSync(join(folder, 'example-'))
      const ran = await runGatehouse([
        ...['import', 'toolhive', '-f', join(examples, file), '--save', target, '-o', 'json'],
        ...stepTools.flatMap((pair) => ['--tool', pair]),
      ])
      const report = untyped(JSON.parse(ran.stdout))
      const outcomes = report.documents.map(({ outcome }: Record<string, string>) => outcome)
      t.notOk(outcomes.includes('not converted'), `${relative(examples, file)}: ${outcomes.join(', ')}`)
      if (report.written.length === 0) continue
      for (const command of ['validate', 'render']) {
        const checked = await runGatehouse([command, '-f', target])
        t.equal(checked.code, 0, `${command} ${file}: ${checked.stderr}`)
      }
      const ours = ownObjects(target)
      if (!kube || ours.length === 0) continue
      kube.must(
        ['apply', '--dry-run=server', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items: ours }),
      )
      t.pass(`an API server takes ${file}`)
    }
  },
)

async function apiServerWithKinds(t: Tap) {
  const kube = await startKubeApiserver(t)
  kube.must(['apply', '--server-side', '-f', resolve(import.meta.dirname, '../../manifests/crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  for (const namespace of ['toolhive-system', 'production', 'redis']) {
    kube.must(['create', 'namespace', namespace])
  }
  return kube
}

function ownObjects(target: string): unknown[] {
  return readdirSync(target)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => parseAllDocuments(readFileSync(join(target, name), 'utf8')))
    .map((document): unknown => untyped(document).toJS())
    .filter((doc) => String(untyped(doc).apiVersion).startsWith('gatehouse.dev/'))
}
