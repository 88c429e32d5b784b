/** Checks the names of the CRDs, and schemas that several fields share. `test/fixtures/public-names.txt` records every field. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { kinds } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.kind.api', '2.kind.short-names', '2.version.api', '2.shape.resource')
proves('3.kind.api', '3.kind.short-names', '3.version.api')

interface Node {
  readonly type?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: readonly string[]
  readonly items?: Node
  readonly additionalProperties?: Node
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

interface Crd {
  readonly spec: {
    readonly group: string
    readonly scope: string
    readonly names: {
      readonly kind: string
      readonly plural: string
      readonly shortNames: readonly string[]
      readonly categories: readonly string[]
    }
    readonly versions: readonly [
      { readonly name: string; readonly schema: { readonly openAPIV3Schema: Node } },
    ]
  }
}

const folder = join(import.meta.dirname, '../../../../manifests/crds')
const crds = new Map<string, Crd>()
for (const file of readdirSync(folder)) {
  const crd: Crd = parse(readFileSync(join(folder, file), 'utf8'))
  crds.set(crd.spec.names.kind, crd)
}

/** Returns the schema node at a path such as `spec.a[].b` or `spec.map{}.c`. */
function nodeAt(kind: string, path: string): Node | undefined {
  let node = crds.get(kind)?.spec.versions[0].schema.openAPIV3Schema
  for (const step of path.split('.')) {
    const name = step.replace(/(\[\]|\{\})$/, '')
    node = node?.properties?.[name]
    if (step.endsWith('[]')) node = node?.items
    if (step.endsWith('{}')) node = node?.additionalProperties
  }
  return node
}

await t.test(
  'MCPExternalAuthConfig and VirtualMCPServer: the embedded authorization server has the same schema',
  async (t) => {
    const here = nodeAt('MCPExternalAuthConfig', 'spec.embeddedAuthServer')
    const there = nodeAt('VirtualMCPServer', 'spec.authServerConfig')
    t.same({ ...here, description: '' }, { ...there, description: '' })
    t.ok(Object.keys(here?.properties ?? {}).length > 10)
  },
)

await t.test(
  'session storage: both schemas are equal, except for the password, which the file reads from the environment',
  async (t) => {
    const fields = (path: string) => Object.keys(nodeAt('VirtualMCPServer', path)?.properties ?? {}).sort()
    t.same(fields('spec.sessionStorage'), ['address', 'db', 'keyPrefix', 'passwordRef', 'provider'])
    t.same(fields('spec.config.sessionStorage'), ['address', 'db', 'keyPrefix', 'provider'])
  },
)

await t.test('names: group, version, scope, category and short names', async (t) => {
  t.same(
    [...crds.keys()].sort(),
    kinds.map(({ kind }) => kind),
  )
  for (const [kind, { spec }] of crds) {
    t.equal(spec.group, 'gatehouse.dev', kind)
    t.equal(spec.scope, 'Namespaced', kind)
    t.same(
      spec.versions.map(({ name }) => name),
      ['v1beta1'],
      kind,
    )
    t.same(spec.names.categories, ['gatehouse'], kind)
  }
  const shortNames = (kind: string) => crds.get(kind)?.spec.names.shortNames
  t.same(shortNames('MCPExternalAuthConfig'), ['extauth', 'mcpextauth'])
  t.same(shortNames('VirtualMCPServer'), ['vmcp', 'virtualmcp'])
  const all = [...crds.values()].flatMap(({ spec }) => [...spec.names.shortNames, spec.names.plural])
  t.equal(new Set(all).size, all.length, 'no short name is used twice')
})
