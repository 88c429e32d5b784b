/** Runs validate, render, unpack and the command tree with a user's command lines. */
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { freePort, runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { kubeMissing, startKubeApiserver } from '../helpers/kube/apiserver.ts'

const quickstart = 'manifests/examples/quickstart'
const built = resolve('dist/gatehouse.js')

interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
}

async function render(): Promise<Rendered[]> {
  const { code, stdout, stderr } = await runGatehouse(['render', '-f', quickstart])
  if (code !== 0) throw new Error(stderr)
  return parseAllDocuments(stdout).map((document) => document.toJS() as Rendered)
}

t.test('validate: accepts good manifests and skips other API groups', async (t) => {
  const { code, stdout } = await runGatehouse(
    ['validate', '-f', quickstart, '-f', '-'],
    'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n',
  )
  t.equal(code, 0)
  t.equal(stdout, '5 valid, 0 invalid, 1 in other API groups skipped\n')
})

t.test('validate: reports every error with file, line and path, and exits with code 1', async (t) => {
  const dir = t.testdir({
    'bad.yaml': [
      'apiVersion: gatehouse.dev/v1beta1',
      'kind: VirtualMCPServer',
      'metadata:',
      '  name: one',
      'spec:',
      '  groupRef:',
      '    name: g',
      '  replicas: -1',
      '  incomingAuth:',
      '    type: nobody',
      '  conifg: {}',
      '',
    ].join('\n'),
  })
  const { code, stderr } = await runGatehouse(['validate', '-f', dir])
  t.equal(code, 1)
  t.match(stderr, /bad\.yaml:8: VirtualMCPServer\/one: spec\.replicas/)
  t.match(stderr, /bad\.yaml:10: VirtualMCPServer\/one: spec\.incomingAuth\.type/)
  t.match(stderr, /spec\.conifg.*did you mean.*config/is)
  const json = await runGatehouse(['validate', '-o', 'json', '-f', dir])
  const rows = JSON.parse(json.stdout) as { valid: boolean; problems: unknown[] }[]
  t.match(rows, [{ valid: false, resource: 'VirtualMCPServer/one' }])
  t.equal(rows[0]?.problems.length, 3)
})

t.test('validate: rejects two documents with the same name', async (t) => {
  const group = 'apiVersion: gatehouse.dev/v1beta1\nkind: MCPGroup\nmetadata: {name: g}\nspec: {}\n'
  const { code, stderr } = await runGatehouse(['validate', '-f', '-'], `${group}---\n${group}`)
  t.equal(code, 1)
  t.match(stderr, /MCPGroup\/g: metadata\.name: is already used at -:1/)
})

t.test(
  'render: prints all children of a virtual server, and vmcp serve starts with the rendered file',
  async (t) => {
    const objects = await render()
    const own = objects.filter(({ metadata }) => /^(vmcp-quickstart|quickstart-vmcp)/.test(metadata.name))
    const kinds = new Set(own.map(({ kind }) => kind))
    for (const kind of ['ServiceAccount', 'ConfigMap', 'Deployment', 'Service', 'Role', 'RoleBinding']) {
      t.ok(kinds.has(kind), kind)
    }
    const file = own.find(({ data }) => data?.['config.yaml'])?.data?.['config.yaml'] ?? ''
    const { backends } = parse(file) as { backends: { name: string }[] }
    t.same(
      backends.map(({ name }) => name),
      ['everything', 'files', 'memory'],
    )
    const dir = t.testdir({ 'config.yaml': file })
    const valid = await runGatehouse(['vmcp', 'validate', '--config', `${dir}/config.yaml`])
    t.equal(valid.code, 0, valid.stderr)
    const port = await freePort()
    const serving = startGatehouse([
      'vmcp',
      'serve',
      '--config',
      `${dir}/config.yaml`,
      '--port',
      String(port),
    ])
    t.teardown(() => serving.interrupt())
    await serving.waitFor(/listening/)
    t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200)
  },
)

t.test('render: the same manifests produce the same bytes', async (t) => {
  const once = await runGatehouse(['render', '-f', quickstart])
  const again = await runGatehouse(['render', '-f', quickstart])
  t.equal(once.stdout, again.stdout)
})

t.test(
  'render: a real API server accepts every object',
  { skip: kubeMissing(), timeout: 120_000 },
  async (t) => {
    const { stdout } = await runGatehouse(['render', '-f', quickstart])
    const server = await startKubeApiserver(t)
    const { code, stderr } = server.kubectl(['apply', '--dry-run=server', '-f', '-'], stdout)
    t.equal(code, 0, stderr)
  },
)

t.test('unpack: the copy runs through its own loader', { skip: process.platform !== 'linux' }, async (t) => {
  const copy = join(t.testdir({}), 'copy')
  const unpacked = spawnSync(process.execPath, [built, 'unpack', copy], { encoding: 'utf8' })
  t.equal(unpacked.status, 0, unpacked.stderr)
  const loader = ['--library-path', join(copy, 'lib'), join(copy, 'node')]
  const ran = spawnSync(join(copy, 'ld.so'), [...loader, join(copy, 'gatehouse.js'), 'proxy', '--help'], {
    cwd: '/',
    env: {},
    encoding: 'utf8',
  })
  t.equal(ran.status, 0, ran.stderr)
  t.match(ran.stdout, /--target-uri/)
})

t.test('unpack: a program that runs from source prints the next step', async (t) => {
  const ran = spawnSync(process.execPath, ['runtime/cli/main.ts', 'unpack', t.testdir({})], {
    encoding: 'utf8',
  })
  t.match(ran, { status: 2, stderr: /make build/ })
})

t.test('command tree: help lists the commands, wrong usage exits with code 2', async (t) => {
  const help = await runGatehouse(['--help'])
  t.equal(help.code, 0)
  for (const command of ['proxy', 'vmcp', 'validate', 'render', 'dev']) t.match(help.stdout, `  ${command}`)
  t.match((await runGatehouse(['--version'])).stdout, /^\d+\.\d+\.\d+\n$/)
  const wrong = await runGatehouse(['rendr'])
  t.equal(wrong.code, 2)
  t.match(wrong.stderr, /Did you mean render\?/)
  t.equal((await runGatehouse(['render'])).code, 2, 'a required flag is missing')
  t.equal((await runGatehouse(['validate', '-f', '/no/such/file'])).code, 2)
  t.equal((await runGatehouse(['dev', '-f', quickstart, '--port', '0'])).code, 2)
})
