/** The JSON Schemas for editors accept every example and reject errors, and every example refers to them. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parseAllDocuments } from 'yaml'

const root = resolve(import.meta.dirname, '../../..')
const folder = join(root, 'docs/reference/schemas')
const examples = readdirSync(join(root, 'manifests/examples'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml') && !file.endsWith('kustomization.yaml'))
  .map((file) => join(root, 'manifests/examples', file))

function compiled(name: string) {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  return ajv.compile(JSON.parse(readFileSync(join(folder, name), 'utf8')) as object)
}

const documentsOf = (file: string) =>
  parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Record<string, unknown>)

t.test('editor schemas: every file compiles on its own under draft 7', async (t) => {
  for (const name of readdirSync(folder)) t.type(compiled(name), 'function', name)
})

t.test('editor schemas: the common schema and the schema of the kind accept every example', async (t) => {
  const any = compiled('manifest.json')
  for (const file of examples) {
    for (const document of documentsOf(file)) {
      t.ok(any(document), `${file}: ${JSON.stringify(any.errors)}`)
      if (!String(document['apiVersion']).startsWith('gatehouse.dev/')) continue
      const one = compiled(`${String(document['kind']).toLowerCase()}.json`)
      t.ok(one(document), `${file}: ${JSON.stringify(one.errors)}`)
    }
  }
})

t.test('editor schemas: an error is reported at its location', async (t) => {
  const any = compiled('manifest.json')
  const apiVersion = 'gatehouse.dev/v1beta1'
  const metadata = { name: 'a' }
  const rows: [string, unknown, string][] = [
    ['a kind that does not exist', { apiVersion, kind: 'MCPSever', metadata }, '/kind'],
    [
      'a field that does not exist',
      { apiVersion, kind: 'MCPGroup', metadata, spec: { descripton: 'x' } },
      '/spec',
    ],
    [
      'a value of another type',
      { apiVersion, kind: 'MCPServer', metadata, spec: { image: 5 } },
      '/spec/image',
    ],
    ['no metadata', { apiVersion, kind: 'MCPGroup', spec: {} }, ''],
  ]
  for (const [name, document, path] of rows) {
    t.notOk(any(document), name)
    t.ok(
      any.errors?.some(({ instancePath }) => instancePath === path),
      `${name}: ${JSON.stringify(any.errors)}`,
    )
  }
  t.ok(any({ apiVersion: 'v1', kind: 'Secret', stringData: { a: 'b' } }), 'other API groups are not checked')
})

t.test('editor schemas: every example names its schema', async (t) => {
  for (const file of examples) {
    const text = readFileSync(file, 'utf8')
    if (!text.includes('gatehouse.dev/v1beta1')) continue
    const [, named = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? []
    t.equal(resolve(dirname(file), named), join(folder, 'manifest.json'), file)
  }
})
