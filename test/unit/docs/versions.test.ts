/** The page of versions lists exactly the deprecated fields and the alpha features, and each deprecated field warns. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { validateResource } from '../../../hooks/index.ts'
import { byText, kinds } from '../../../schemas/index.ts'
import { objectsIn } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

const root = resolve(import.meta.dirname, '../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const page = read('docs/reference/versions.md')

/** Returns the cells of a section's table, without its head. */
function rowsOf(heading: string): string[][] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('| '))
  return lines.slice(1).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

interface Node {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly [key: string]: unknown
}

/** Paths of the fields of a kind whose description matches. */
function fieldsOf(node: Node, pattern: RegExp, path = ''): string[] {
  const own = pattern.test(node.description ?? '') ? [path] : []
  const inner = Object.entries(node.properties ?? {}).flatMap(([name, field]) =>
    fieldsOf(field, pattern, path === '' ? name : `${path}.${name}`),
  )
  return [...own, ...inner, ...(node.items ? fieldsOf(node.items, pattern, path) : [])]
}

function schemaOf(plural: string): Node {
  return parse(read(`manifests/crds/${plural}.yaml`)).spec.versions[0].schema.openAPIV3Schema
}

t.test('each deprecated field of the definitions is listed, with its replacement', async (t) => {
  const listed = rowsOf('Deprecation').map(([field = '']) => field.replaceAll('`', ''))
  t.same(fieldsOf(schemaOf('virtualmcpservers'), /\bDeprecated\b/).toSorted(), listed.toSorted())
  for (const { kind, plural } of kinds.filter(({ kind }) => kind !== 'VirtualMCPServer'))
    for (const field of fieldsOf(schemaOf(plural), /\bDeprecated\b/))
      t.ok(page.includes(field), `${kind} ${field}`)
})

t.test('each deprecated field causes an admission warning that names its replacement', async (t) => {
  const example = globSync(join(root, 'manifests/examples/embedded-auth-server/*.yaml')).flatMap((file) =>
    objectsIn(readFileSync(file, 'utf8')),
  )
  const server = untyped(structuredClone(example.find(({ kind }) => kind === 'VirtualMCPServer')))
  delete server.spec.authServerConfig.primaryUpstreamProvider
  delete server.spec.telemetryConfigRef
  server.spec.incomingAuth.authzConfig = {
    type: 'inline',
    inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'company' },
  }
  server.spec.config = { ...server.spec.config, telemetry: { endpoint: 'http://collector:4318' } }
  const { violations, warnings } = validateResource(server, {})
  t.same(violations, [])
  for (const [field = '', , replacement = ''] of rowsOf('Deprecation')) {
    const name = field.replaceAll('`', '').replace(/^spec\.(incomingAuth\.)?/, '')
    const found = warnings.find((text) => text.startsWith(`${name} is deprecated`))
    t.match(found, replacement.replaceAll('`', '').replace('spec.', ''), name)
  }
})

t.test('no flag is deprecated', async (t) => {
  t.notMatch(read('docs/reference/cli.md'), /\(deprecated\)|deprecated[:;]/i)
})

t.test('the marks of alpha features and the table agree', async (t) => {
  const places = rowsOf('Alpha features').map(([, where = '']) => where)
  const fields = kinds.flatMap(({ plural }) => fieldsOf(schemaOf(plural), /\b[Aa]lpha\b/))
  const names = new Set(fields.map((path) => path.split('.').at(-1) ?? ''))
  t.same([...names].toSorted(byText), ['acceptedAssertionTypes', 'obo', 'spiffeClientAuth', 'xaa'])

  const options = read('docs/reference/cli.md').split(/\s(?=--[a-z])/)
  const marked = options
    .filter((text) => /\(alpha\b/.test(text))
    .map((text) => /^--[a-z-]+/.exec(text)?.[0] ?? '')
  t.same([...new Set(marked)].toSorted(byText), ['--at-login', '--remote-auth-grant'])

  for (const name of [...names, ...marked])
    t.ok(
      places.some((place) => place.includes(name)),
      name,
    )
})

t.test('the guides mark alpha features', async (t) => {
  for (const [guide, count] of [
    ['external-auth', 2],
    ['platform-identities', 2],
    ['proxy', 1],
    ['up', 1],
  ] as const)
    t.equal(read(`docs/guides/${guide}.md`).match(/\bAlpha\b|\balpha feature\b/g)?.length, count, guide)
})
