/** `gatehouse lock -f` writes and checks the tools of REST services, which come from OpenAPI documents. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { runGatehouse } from '../helpers/gatehouse.ts'
import { startLoopback } from '../helpers/loopback.ts'
import { petDocument } from '../helpers/openapi/pet-service.ts'
import { startRestRig } from '../helpers/openapi/rest-rig.ts'

t.setTimeout(300_000)

const apiVersion = 'gatehouse.dev/v1beta1'
const lock = (...args: string[]) => runGatehouse(['lock', ...args])

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-lock-rest-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const configMap = (document: unknown) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'pets-openapi' },
  data: { 'openapi.json': JSON.stringify(document) },
})

const service = (spec: object) => ({
  apiVersion,
  kind: 'MCPOpenAPIServer',
  metadata: { name: 'pets' },
  spec: {
    groupRef: { name: 'rest' },
    baseUrl: 'https://pets.invalid/api',
    document: { configMapRef: { name: 'pets-openapi', key: 'openapi.json' } },
    ...spec,
  },
})

function write(path: string, ...objects: readonly object[]): void {
  writeFileSync(join(path, 'manifests.yaml'), objects.map((object) => stringify(object)).join('---\n'))
}

interface LockedTool {
  readonly name: string
  readonly definition: object
}

const toolsIn = (path: string): readonly LockedTool[] =>
  parse(readFileSync(join(path, 'pets.lock.yaml'), 'utf8')).spec.tools

t.test(
  'lock: a REST service, without a request to the service, and a diff for a changed document',
  async (t) => {
    const path = folder(t)
    write(path, configMap(petDocument()), service({}))
    const temporary = folder(t)
    const written = await runGatehouse(['lock', '-f', path, '-o', path], '', {
      ...process.env,
      TMPDIR: temporary,
    })
    t.match(written, { code: 0, stdout: /pets\.lock\.yaml: 2 tools/, stderr: '' })
    t.strictSame(readdirSync(temporary), [], 'the copy of the document is deleted')
    const { spec } = parse(readFileSync(join(path, 'pets.lock.yaml'), 'utf8'))
    t.strictSame(spec.backendRef, { kind: 'MCPOpenAPIServer', name: 'pets' })
    t.match(toolsIn(path)[0], {
      name: 'getPet',
      definition: { _meta: { 'gatehouse.dev/request': /^sha256:[0-9a-f]{64}$/ } },
    })
    t.match(await runGatehouse(['validate', '-f', join(path, 'pets.lock.yaml')]), { code: 0 })
    t.match(await lock('-f', path, '--check'), { code: 0, stdout: /pets: in sync, 2 pinned/ })
    const document = JSON.stringify(
      petDocument({ '/cats': { get: { operationId: 'listCats', responses: {} } } }),
    )
    const changed = document
      .replace('List the pets', 'List all pets')
      .replace('"/pets/{petId}"', '"/admin/{petId}"')
    write(path, configMap(JSON.parse(changed)), service({}))
    const checked = await lock('-f', path, '--check')
    t.equal(checked.code, 1)
    t.match(checked.stdout, /pets: 2 changed, 1 new, 0 removed/)
    t.match(checked.stdout, /tool getPet changed: meta\n +meta\n[^]*-  "gatehouse\.dev\/request": "sha256:/)
    t.match(
      checked.stdout,
      /tool listPets changed: text\n +text\n +-description: List the pets\n[^]*\+title: List all pets/,
    )
    t.match(checked.stdout, /tool listCats new/)
  },
)

t.test('lock: the locked tools match those of a running server with the same settings', async (t) => {
  const path = folder(t)
  const parameters = ['X-Tenant', 'X-Api-Key', 'X-Label'].map((name) => ({
    ...{ name, in: 'header', schema: { type: 'string' } },
  }))
  const document = petDocument({ '/cats': { get: { operationId: 'listCats', parameters, responses: {} } } })
  const settings = {
    operations: { include: [{ methods: ['GET', 'DELETE'] }] },
    overrides: { listPets: { name: 'find_pets', set: { 'query.limit': '5' } } },
    response: { output: 'enforce' },
  }
  const auth = {
    apiVersion,
    kind: 'MCPExternalAuthConfig',
    metadata: { name: 'key' },
    spec: {
      type: 'headerInjection',
      headerInjection: { headerName: 'X-API-Key', valueSecretRef: { name: 'key', key: 'key' } },
    },
  }
  const server = service({
    ...settings,
    headerForward: { addPlaintextHeaders: { 'X-Tenant': 'acme' } },
    externalAuthConfigRef: { name: 'key' },
  })
  write(path, configMap(document), auth, server)
  t.match(await lock('-f', path, '-o', path), { code: 0, stderr: '' })
  const headerInjection = { headerName: 'X-API-Key', headerValueEnv: 'KEY' }
  const rig = await startRestRig(t, {
    document,
    openapi: settings,
    backend: { headersEnv: 'HEADERS' },
    config: {
      outgoingAuth: { source: 'inline', default: { type: 'header_injection', headerInjection } },
      pinning: { onChanged: 'block', onNew: 'block' },
      toolLocks: [
        {
          backend: 'pets',
          tools: toolsIn(path).map(({ name, definition }) => ({
            name,
            definition: JSON.stringify(definition),
          })),
        },
      ],
    },
    env: { KEY: 'k', HEADERS: JSON.stringify({ addPlaintextHeaders: { 'X-Tenant': 'acme' } }) },
  })
  const { tools } = await rig.client.listTools()
  t.strictSame(tools.map(({ name }) => name).toSorted(), ['deletePet', 'find_pets', 'getPet', 'listCats'])
  const cats = tools.find(({ name }) => name === 'listCats')
  t.strictSame(Object.keys(cats?.inputSchema.properties ?? {}), ['X-Label'])
  write(path, configMap(document), server)
  const checked = await lock('-f', path, '--check')
  t.match(checked.stderr, /pets: MCPExternalAuthConfig key is not among the given files/)
  t.match(checked, { code: 1, stdout: /tool listCats changed: input/ })
})

t.test('lock: a document at a URL requires its digest', async (t) => {
  const text = JSON.stringify(petDocument())
  const host = await startLoopback(() => ({ body: text }))
  t.teardown(() => host.close())
  const path = folder(t)
  const at = (sha256: string) =>
    service({
      baseUrl: `${new URL(host.url).origin}/api`,
      allowPrivateEndpoint: true,
      document: { url: `${new URL(host.url).origin}/openapi.json`, sha256 },
    })
  write(path, at(createHash('sha256').update(text).digest('hex')))
  t.match(await lock('-f', path, '-o', path), { code: 0, stdout: /pets\.lock\.yaml: 2 tools/ })
  t.ok(host.seen.every((request) => request.path === '/openapi.json' && !request.headers.authorization))
  write(path, at('0'.repeat(64)))
  t.match(await lock('-f', path, '--check'), { code: 2, stderr: /pets: cannot list .* sha256 is 0{64}/ })
})

t.test('lock: a missing or invalid document, an invalid service and --url are errors', async (t) => {
  const path = folder(t)
  write(path, service({}))
  const missing = await lock('-f', path, '--check', '--format', 'json')
  t.match(missing, {
    code: 2,
    stderr: /pets: is not locked: ConfigMap pets-openapi is not among the given files/,
  })
  t.match(JSON.parse(missing.stdout), { inSync: false, unlisted: [{ backend: 'pets' }] })
  const { metadata: _, ...rest } = configMap(petDocument())
  write(path, { ...rest, metadata: { name: 'pets-openapi', namespace: 'other' } }, service({}))
  t.match(await lock('-f', path), { code: 2, stderr: /is not among the given files/ }, 'another namespace')
  write(path, configMap({ swagger: '2.0' }), service({}))
  t.match(await lock('-f', path), { code: 2, stderr: /pets: cannot list .*\(version\)/ })
  write(path, configMap(petDocument()), service({ baseUrl: 'http://pets.invalid' }))
  t.match(await lock('-f', path), { code: 2, stderr: /manifests\.yaml:\d+: spec\.baseUrl/ })
  write(path, configMap(petDocument()), service({}))
  t.match(await lock('-f', path, '--url', 'pets=https://a.example'), {
    code: 2,
    stderr: /--url pets: has no effect, because an MCPOpenAPIServer is locked from its document/,
  })
})

t.test('lock: two services with one name are refused', async (t) => {
  const path = folder(t)
  const inOther = (object: { metadata: object }) => ({
    ...object,
    metadata: { ...object.metadata, namespace: 'other' },
  })
  const objects = [configMap(petDocument()), service({})]
  write(path, ...objects, ...objects.map(inOther))
  const { code, stderr } = await lock('-f', path)
  t.equal(code, 2)
  t.match(stderr, 'several backends are named pets: lock each namespace with a separate command')
})
