/**
 * The CRDs have the fields of the specification's tables, which are written out here once more: name, type, `!` for
 * required. A field beyond them stands in no table, and is optional: manifests without it stay valid.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { kinds } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { authServerFields, externalAuthFields } from '../tables/fields-external-auth.ts'
import { otherFields } from '../tables/fields-other-kinds.ts'
import { sessionFields, virtualServerFields } from '../tables/fields-virtual-server.ts'

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

/** The schema node at a path such as `spec.a[].b` or `spec.map{}.c`. */
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

/** A field as the tables write it. */
function shown(name: string, node: Node, required: boolean): string {
  return `${name}${required ? '!' : ''} ${typeOf(node)}`
}

/** The name in a line of a table. */
function nameOf(field: string): string {
  return /^\w+/.exec(field)?.[0] ?? ''
}

function typeOf(node: Node): string {
  if (node.items) return `list of ${typeOf(node.items)}`
  if (node.additionalProperties) return `map to ${typeOf(node.additionalProperties)}`
  if (node['x-kubernetes-preserve-unknown-fields']) return 'free'
  if (node.format === 'date-time') return 'date-time'
  return node.format ?? node.type ?? 'any'
}

for (const [kind, tables] of Object.entries({
  ...externalAuthFields,
  ...virtualServerFields,
  ...otherFields,
})) {
  await t.test(
    `${kind}: it has the fields of the tables, and what goes beyond them is optional`,
    async (t) => {
      for (const [path, fields] of Object.entries(tables)) {
        const node = nodeAt(kind, path)
        const required = new Set(node?.required)
        const specified = new Set(fields.map(nameOf))
        const found = Object.entries(node?.properties ?? {})
          .filter(([name]) => specified.has(name) || required.has(name))
          .map(([name, child]) => shown(name, child, required.has(name)))
        t.same(found.sort(), [...fields].sort(), path)
      }
    },
  )
}

await t.test(
  'MCPExternalAuthConfig and VirtualMCPServer: one shape of the embedded authorization server',
  async (t) => {
    const here = nodeAt('MCPExternalAuthConfig', 'spec.embeddedAuthServer')
    const there = nodeAt('VirtualMCPServer', 'spec.authServerConfig')
    t.same({ ...here, description: '' }, { ...there, description: '' })
    t.ok(Object.keys(authServerFields).length > 10)
  },
)

await t.test(
  'session storage: one shape, but for the password, which the file takes from the environment',
  async (t) => {
    const fields = (path: string) => Object.keys(nodeAt('VirtualMCPServer', path)?.properties ?? {}).sort()
    t.same(fields('spec.sessionStorage'), [...sessionFields, 'passwordRef'].sort())
    t.same(fields('spec.config.sessionStorage'), [...sessionFields].sort())
  },
)

await t.test('every object with fields that the tables name is in a table', async (t) => {
  for (const [kind, tables] of Object.entries({
    ...externalAuthFields,
    ...virtualServerFields,
    ...otherFields,
  })) {
    const listed = new Set(Object.keys(tables))
    const visit = (node: Node | undefined, path: string): void => {
      if (!node) return
      if (node.properties && !listed.has(path) && !isShared(path)) t.fail(`${kind} ${path} is in no table`)
      const specified = new Set((tables[path] ?? []).map(nameOf))
      for (const [name, child] of Object.entries(node.properties ?? {})) {
        if (specified.has(name)) visit(child, `${path}.${name}`)
      }
      visit(node.items, `${path}[]`)
      visit(node.additionalProperties, `${path}{}`)
    }
    for (const part of ['spec', 'status']) visit(nodeAt(kind, part), part)
    t.pass(kind)
  }
})

/** Shapes that one line in the tables of their parents already says: references by name, conditions. */
function isShared(path: string): boolean {
  return /(Ref|Refs\[\]|status\.conditions\[\]|\.imagePullSecrets\[\])$/.test(path)
}

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
