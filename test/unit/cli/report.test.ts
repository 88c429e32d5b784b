/** `validate -o`: machine-readable reports. */
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const manifest = `apiVersion: gatehouse.dev/v1beta1
kind: MCPServer
metadata: {name: 'a<b&"'}
spec: {image: 5}
---
apiVersion: gatehouse.dev/v1beta1
kind: MCPGroup
metadata: {name: good}
spec: {}
`

interface Sarif {
  readonly version: string
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } }
    readonly results: readonly {
      readonly ruleId: string
      readonly level: string
      readonly locations: readonly {
        readonly physicalLocation: {
          readonly artifactLocation: { readonly uri: string }
          readonly region: { readonly startLine: number }
        }
      }[]
    }[]
  }[]
}

await t.test('validate -o: every format has the same findings and exit code', async (t) => {
  const dir = t.testdir({ 'a b.yaml': manifest })
  const file = join(dir, 'a b.yaml')
  const report = async (format: string) => {
    const { code, stdout } = await runGatehouse(['validate', '-f', dir, '-o', format])
    t.equal(code, 1, `${format}: exit code`)
    return stdout
  }

  const rows = JSON.parse(await report('json')) as { resource: string; problems: { line: number }[] }[]
  t.match(rows, [
    {
      resource: 'MCPServer/a<b&"',
      problems: [
        { path: 'metadata.name', line: 3 },
        { path: 'spec.image', line: 4 },
      ],
    },
    { resource: 'MCPGroup/good', problems: [] },
  ])

  const { version, runs } = JSON.parse(await report('sarif')) as Sarif
  t.equal(version, '2.1.0')
  const [run] = runs
  const lines = run?.results.map(({ level, locations: [at] }) => [
    level,
    at?.physicalLocation.artifactLocation.uri,
    at?.physicalLocation.region.startLine,
  ])
  const uri = file.split('/').map(encodeURIComponent).join('/')
  t.same(lines, [
    ['error', uri, 3],
    ['error', uri, 4],
  ])
  const known = new Set(run?.tool.driver.rules.map(({ id }) => id))
  t.ok(
    run?.results.every(({ ruleId }) => known.has(ruleId)),
    'every finding has its rule',
  )

  const xml = await report('junit')
  t.match(xml, /<testsuite name="gatehouse validate" tests="2" failures="1">/)
  t.match(xml, /name="MCPServer\/a&lt;b&amp;&quot;"><failure message="2 errors">/)
  t.match(xml, /name="MCPGroup\/good"><\/testcase>/)
})

await t.test('validate -o, render -o: an unknown format is a usage error', async (t) => {
  for (const command of ['validate', 'render']) {
    const { code, stderr } = await runGatehouse([command, '-f', 'manifests/examples/quickstart', '-o', 'xml'])
    t.equal(code, 2, command)
    t.match(stderr, /Allowed choices are/, command)
  }
})

await t.test('validate -o json: a problem has a path, a message and a line', async (t) => {
  const definition = `apiVersion: gatehouse.dev/v1beta1
kind: VirtualMCPCompositeToolDefinition
metadata: {name: digest}
spec:
  name: digest
  description: Sums up
  steps:
    - {id: a, tool: files.read, arguments: {path: '{{ nope }}'}}
`
  const { stdout } = await runGatehouse(['validate', '-f', '-', '-o', 'json'], definition)
  const message = 'is not a template: unknown function nope'
  const [row] = JSON.parse(stdout) as { problems: object[] }[]
  t.strictSame(row?.problems, [{ path: 'spec.steps[0].arguments.path', message, line: 8 }])
})
