/**
 * Checks that the generated CRDs follow the rules for structural schemas, whose violations appear only during
 * installation, and stay small enough for client-side apply. Checks that need a real API server are in
 * test/e2e/kube/schemas.test.ts.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { kinds } from '../../../schemas/index.ts'

type Node = { readonly [keyword: string]: unknown }

const folder = join(import.meta.dirname, '../../../manifests/crds')
const files = readdirSync(folder)
const crds = files.map((file) => {
  const text = readFileSync(join(folder, file), 'utf8')
  const crd: Node = parse(text)
  return { file, text, crd }
})

/** Keywords that a structural schema may use. The API server rejects or drops all others. */
const allowed = new Set(
  'description type default enum required properties items additionalProperties nullable pattern format minLength maxLength minimum maximum minItems maxItems minProperties maxProperties x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-map-type x-kubernetes-preserve-unknown-fields x-kubernetes-validations'.split(
    ' ',
  ),
)

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value
  for (const key of path) {
    if (Array.isArray(current)) current = current[Number(key)]
    else current = isNode(current) ? current[key] : undefined
  }
  return current
}

function visit(node: unknown, path: string, see: (node: Node, path: string) => void): void {
  if (!isNode(node)) throw new Error(`${path} is no schema`)
  see(node, path)
  const { properties, items, additionalProperties } = node
  if (isNode(properties))
    for (const [name, child] of Object.entries(properties)) visit(child, `${path}.${name}`, see)
  if (items !== undefined) visit(items, `${path}[]`, see)
  if (additionalProperties !== undefined) visit(additionalProperties, `${path}{}`, see)
}

function eachNode(see: (node: Node, path: string) => void): void {
  for (const { file, crd } of crds)
    visit(at(crd, 'spec', 'versions', 0, 'schema', 'openAPIV3Schema'), file, see)
}

await t.test('CRDs: one file per kind, named after its plural', async (t) => {
  t.same(files.sort(), kinds.map(({ plural }) => `${plural}.yaml`).sort())
  for (const { file, crd } of crds)
    t.equal(at(crd, 'metadata', 'name'), file.replace('.yaml', '.gatehouse.dev'))
})

await t.test('CRDs: only keywords of structural schemas, and a type everywhere', async (t) => {
  eachNode((node, path) => {
    for (const keyword of Object.keys(node)) if (!allowed.has(keyword)) t.fail(`${path} has ${keyword}`)
    if (node['type'] === undefined && node['x-kubernetes-preserve-unknown-fields'] !== true)
      t.fail(`${path} has no type`)
    if (node['properties'] !== undefined && node['additionalProperties'] !== undefined)
      t.fail(`${path} is both object and map`)
  })
  t.pass('visited')
})

await t.test('CRDs: every list declares its type in a form that the API server accepts', async (t) => {
  eachNode((node, path) => checkList(t, node, path))
  t.pass('visited')
})

function checkList(t: Test, node: Node, path: string): void {
  const kind = node['x-kubernetes-list-type']
  if (node['type'] === 'array' && kind === undefined) t.fail(`${path} does not say what kind of list it is`)
  if (kind === 'set' && isNode(at(node, 'items', 'properties'))) t.fail(`${path}: a set holds scalars`)
  if (kind !== 'map') return
  const required = at(node, 'items', 'required')
  for (const key of Array.isArray(node['x-kubernetes-list-map-keys'])
    ? node['x-kubernetes-list-map-keys']
    : []) {
    const field = at(node, 'items', 'properties', String(key))
    const sure = (Array.isArray(required) && required.includes(key)) || at(field, 'default') !== undefined
    if (!isNode(field) || !sure || field['nullable'] === true)
      t.fail(`${path}: key ${String(key)} may be missing`)
  }
}

await t.test('CRDs: values next to a rule are bounded, so that its cost can be estimated', async (t) => {
  const bounded = (node: Node, path: string): void => {
    const type = node['type']
    if (type === 'array' && node['maxItems'] === undefined) t.fail(`${path} has no maxItems`)
    if (node['additionalProperties'] !== undefined && node['maxProperties'] === undefined) {
      t.fail(`${path} has no maxProperties`)
    }
  }
  for (const { file, crd } of crds) {
    visit(
      at(crd, 'spec', 'versions', 0, 'schema', 'openAPIV3Schema', 'properties', 'spec'),
      `${file} spec`,
      bounded,
    )
  }
  t.pass('visited')
})

await t.test('CRDs: regular expressions have the same meaning in RE2 and ECMAScript', async (t) => {
  const special = /\(\?[=!<]|\\[1-9]|\\k<|\\p\{|\(\?:/
  eachNode((node, path) => {
    const { pattern } = node
    if (typeof pattern !== 'string') return
    t.doesNotThrow(() => new RegExp(pattern, 'u'), path)
    if (special.test(pattern)) t.fail(`${path}: ${pattern} is not in the common subset`)
  })
})

await t.test('CRDs: each rule has a message, a known reason and a field path that exists', async (t) => {
  let rules = 0
  eachNode((node, path) => {
    const list = node['x-kubernetes-validations']
    for (const rule of Array.isArray(list) ? list : []) {
      rules++
      const message: unknown = at(rule, 'message')
      if (typeof message !== 'string' || message.length < 10) t.fail(`${path}: a rule without a message`)
      const reason = String(at(rule, 'reason'))
      t.match(reason, /^FieldValue(Invalid|Forbidden|Required|Duplicate)$/, path)
      const field = at(rule, 'fieldPath')
      if (typeof field !== 'string') continue
      const steps = field
        .split('.')
        .slice(1)
        .flatMap((name) => ['properties', name])
      t.ok(at(node, ...steps), `${path}: ${field} exists`)
    }
  })
  t.ok(rules > 150, `${rules} rules`)
})

/**
 * kubectl's client-side apply stores the object as JSON in an annotation, and all annotations together are limited to
 * 256 KiB. The lower limit here fails before a feature reaches that.
 */
const most = 240 * 1024
/**
 * The file is larger than the JSON because of its indentation, which no limit of Kubernetes counts. Without the compact
 * style, the largest file is 1.9 times as large as its JSON.
 */
const mostYamlPerJson = 1.6

await t.test('CRDs: small enough for client-side apply, with a margin for future fields', async (t) => {
  for (const { file, crd, text } of crds) {
    const json = Buffer.byteLength(JSON.stringify(crd))
    t.ok(json < most, `${file}: ${json} bytes as JSON`)
    const yaml = Buffer.byteLength(text)
    t.ok(yaml < mostYamlPerJson * json, `${file}: ${yaml} bytes as YAML, ${json} as JSON`)
  }
})

await t.test(
  'CRDs: every kind has a status, and kinds that an autoscaler can control have the scale subresource',
  async (t) => {
    const scaled: string[] = []
    for (const { crd, file } of crds) {
      const version = at(crd, 'spec', 'versions', 0)
      t.same(at(version, 'subresources', 'status'), {}, file)
      const scale = at(version, 'subresources', 'scale')
      if (scale === undefined) continue
      scaled.push(String(at(crd, 'spec', 'names', 'kind')))
      const schema = at(version, 'schema', 'openAPIV3Schema', 'properties')
      t.ok(at(schema, 'spec', 'properties', 'replicas'), `${file}: spec.replicas`)
      t.ok(at(schema, 'status', 'properties', 'replicas'), `${file}: status.replicas`)
      t.ok(at(schema, 'status', 'properties', 'selector'), `${file}: status.selector`)
    }
    t.same(scaled.sort(), ['MCPCatalogue', 'MCPRemoteProxy', 'MCPServer', 'VirtualMCPServer'])
  },
)

await t.test('CRDs: printer columns read fields that exist', async (t) => {
  for (const { crd, file } of crds) {
    const version = at(crd, 'spec', 'versions', 0)
    const columns = at(version, 'additionalPrinterColumns')
    t.ok(Array.isArray(columns) && columns.length > 1, file)
    for (const column of Array.isArray(columns) ? columns : []) {
      const path = String(at(column, 'jsonPath'))
      if (path === '.metadata.creationTimestamp') continue
      const steps = path
        .replace(/\[\?\(@\.type=="[A-Za-z]+"\)\]\.(status|message)$/, '')
        .split('.')
        .slice(1)
        .flatMap((name) => ['properties', name])
      t.ok(at(version, 'schema', 'openAPIV3Schema', ...steps), `${file} ${path}`)
    }
  }
})

await t.test('CRDs: objects are closed, except for the listed free-form fields', async (t) => {
  const free: string[] = []
  eachNode((node, path) => {
    if (node['x-kubernetes-preserve-unknown-fields'] === true) free.push(path.replace(/^.*?\.yaml\./, ''))
    const bare = node['type'] === 'object' && !node['properties'] && !node['additionalProperties']
    if (bare && node['x-kubernetes-preserve-unknown-fields'] !== true && !path.endsWith('.metadata')) {
      t.fail(`${path} takes nothing`)
    }
  })
  const names = new Set(free.map((path) => path.split('.').at(-1) ?? ''))
  t.same([...names].sort(), [
    'arguments',
    'config',
    'default',
    'defaultResults',
    'definition',
    'keys[]',
    'parameters',
    'podTemplateSpec',
    'properties',
    'schema',
  ])
})

t.test('every field has a description that does more than repeat its name', async (t) => {
  for (const { file, crd } of crds) {
    const missing = fieldsIn(at(crd, 'spec', 'versions', 0, 'schema', 'openAPIV3Schema'), '').filter(
      ([path, { description }]) =>
        // The API server rejects a description of the metadata.
        path !== '.metadata' && !isSentenceAbout(path.split('.').at(-1) ?? '', description),
    )
    t.same(
      missing.map(([path, { description }]) => `${path}: ${String(description)}`),
      [],
      file,
    )
  }
})

/** Returns every property of a schema with its path. */
function fieldsIn(schema: unknown, path: string): readonly (readonly [path: string, field: Node])[] {
  if (!isNode(schema)) return []
  const own = Object.entries(isNode(schema['properties']) ? schema['properties'] : {}).flatMap(
    ([name, field]) => [
      ...(isNode(field) ? ([[`${path}.${name}`, field]] as const) : []),
      ...fieldsIn(field, `${path}.${name}`),
    ],
  )
  return [
    ...own,
    ...fieldsIn(schema['items'], `${path}[]`),
    ...fieldsIn(schema['additionalProperties'], `${path}[]`),
  ]
}

function isSentenceAbout(name: string, description: unknown): boolean {
  if (typeof description !== 'string' || !/\s.*[.:)]$/s.test(description)) return false
  return description.toLowerCase().replaceAll(/[^a-z0-9]/g, '') !== name.toLowerCase()
}
