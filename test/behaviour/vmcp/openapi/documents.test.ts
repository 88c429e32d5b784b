/** Sources of OpenAPI documents. An error in a new document never changes the tools that are served. */
import { createHash } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  Converter,
  conversionHeapMb,
  DocumentRejected,
} from '../../../../runtime/vmcp/backends/openapi/convert.ts'
import { RestDocument } from '../../../../runtime/vmcp/backends/openapi/documents.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { documentFile, petDocument } from '../../../helpers/openapi/pet-service.ts'
import { bareNames, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { type RestRig, startRestRig } from '../../../helpers/openapi/rest-rig.ts'

const cats = { '/cats': { get: { operationId: 'listCats', responses: { 200: { description: 'ok' } } } } }
const four = ['createPet', 'deletePet', 'getPet', 'listPets']
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

async function toolsOf({ client }: RestRig): Promise<readonly string[]> {
  return (await client.listTools()).tools.map(({ name }) => name).toSorted()
}

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((done) => setTimeout(done, 50))
}

async function statusOf({ vmcp }: RestRig): Promise<string> {
  return (await fetch(new URL('/status', vmcp.url))).text()
}

await t.test('a changed file replaces the tools', async (t) => {
  const rig = await startRestRig(t)
  t.same(await toolsOf(rig), four)
  rig.file.write(petDocument(cats))
  await until(async () => (await toolsOf(rig)).includes('listCats'))
  t.same(await toolsOf(rig), [...four, 'listCats'].toSorted())
})

const broken: Readonly<Record<string, [document: unknown, reason: RegExp]>> = {
  'is not JSON': ['{', /syntax/],
  'is a page': ['<!doctype html><p>Not found', /syntax|structure/],
  'has another version': [{ swagger: '2.0' }, /version/],
  'has an external reference': [
    petDocument({ '/x': { $ref: 'http://169.254.169.254/x.json' } }),
    /external-reference/,
  ],
  'repeats a key': ['{"openapi":"3.0.0","paths":{},"paths":{}}', /duplicate-key/],
  'is too deep': [`{"openapi":"3.0.0","x":${'['.repeat(200)}${']'.repeat(200)}}`, /depth/],
  'is too large': [`{"x":"${'x'.repeat(5 * 1024 * 1024)}"}`, /larger than 5 MiB/],
  'has no operations': [{ openapi: '3.0.0', info: {}, paths: {} }, /no-operations/],
  'has too many operations': [
    petDocument(Object.fromEntries(Array.from({ length: 2_001 }, (_, i) => [`/p${i}`, { get: {} }]))),
    /operation-count/,
  ],
  'expands aliases': [
    `openapi: 3.0.0\na: &a [1,1,1,1,1,1,1,1,1,1]\n${'bcdefgh'
      .split('')
      .map((name, i) => `${name}: &${name} [${Array(10).fill(`*${'abcdefgh'[i]}`).join(',')}]`)
      .join('\n')}\npaths: {}`,
    /aliases|values/,
  ],
}

for (const [what, [document, reason]] of Object.entries(broken)) {
  await t.test(`a new document that ${what}: the tools stay, and the reason is reported`, async (t) => {
    const rig = await startRestRig(t)
    t.same(await toolsOf(rig), four)
    rig.file.write(document)
    await until(() => rig.log().includes('an OpenAPI document cannot be used'))
    t.same(await toolsOf(rig), four)
    t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: 'Rex' } })
    const status = await statusOf(rig)
    t.match(status, /the OpenAPI document of backend pets cannot be used, and the previous tools stay in use/)
    t.match(status, reason)
    rig.file.write(petDocument(cats))
    await until(async () => (await toolsOf(rig)).includes('listCats'))
    t.strictSame(JSON.parse(await statusOf(rig)).problem_details, [])
  })
}

await t.test('an invalid document at startup makes the backend unavailable', async (t) => {
  const rig = await startRestRig(t, { document: '{' })
  t.same(await toolsOf(rig).catch((): string[] => []), [])
  await until(async () => (await statusOf(rig)).includes('configuration_invalid'))
  const status = await statusOf(rig)
  t.match(status, /backend pets has no tools, because its OpenAPI document cannot be used/)
  t.match(JSON.parse(status), {
    healthy: false,
    backends: [{ name: 'pets', last_error: { category: 'configuration_invalid' } }],
  })
  rig.file.write(petDocument())
  await until(async () => (await toolsOf(rig).catch((): string[] => [])).length === 4)
})

await t.test('a ConfigMap mount changes by a swap of symbolic links', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mount-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const mount = (version: string, document: unknown): void => {
    mkdirSync(join(folder, version))
    writeFileSync(join(folder, version, 'openapi.json'), JSON.stringify(document))
    symlinkSync(version, join(folder, 'new'))
    renameSync(join(folder, 'new'), join(folder, '..data'))
  }
  mount('..1', petDocument())
  symlinkSync(join('..data', 'openapi.json'), join(folder, 'openapi.json'))
  const rig = await startRestRig(t, { openapi: { document: { path: join(folder, 'openapi.json') } } })
  t.notOk((await toolsOf(rig)).includes('listCats'))
  mount('..2', petDocument(cats))
  await until(async () => (await toolsOf(rig)).includes('listCats'))
})

await t.test('a document from a URL needs the expected digest', async (t) => {
  const text = JSON.stringify(petDocument())
  const host = await startLoopback(() => ({ body: text, headers: { 'content-type': 'application/json' } }))
  t.teardown(() => host.close())
  const url = `${host.url}/openapi.json`
  const rig = await startRestRig(t, {
    openapi: { document: { url, sha256: sha256(text) }, operations: {} },
  })
  t.same(await toolsOf(rig), ['getPet', 'listPets'])
  t.equal(host.seen[0]?.headers.authorization, undefined)
  const wrong = await startRestRig(t, { openapi: { document: { url, sha256: sha256('other') } } })
  t.same(await toolsOf(wrong).catch(() => []), [])
  t.match(await statusOf(wrong), /the digest of the document at the URL is [0-9a-f]{64}, but sha256 is/)
})

await t.test('a changed digest that does not match keeps the tools of the last document', async (t) => {
  let text = JSON.stringify(petDocument())
  const host = await startLoopback(() => ({ body: text, headers: { 'content-type': 'application/json' } }))
  t.teardown(() => host.close())
  const backendWith = (url: string, digest: string, operations: object = {}) => ({
    ...{ url, transport: 'openapi' as const },
    openapi: { document: { url: `${host.url}/openapi.json`, sha256: digest }, operations },
  })
  const rig = await startRestRig(t, {
    openapi: { document: { url: `${host.url}/openapi.json`, sha256: sha256(text) }, operations: {} },
  })
  t.same(await toolsOf(rig), ['getPet', 'listPets'])
  const aggregation = { aggregation: bareNames('pets') }
  const reload = (digest: string, operations?: object) =>
    rig.vmcp.reload(vmcpConfig({ pets: backendWith(rig.service.url, digest, operations) }, aggregation))
  reload(sha256('another'))
  await until(() => rig.log().includes('an OpenAPI document cannot be used'))
  t.same(await toolsOf(rig), ['getPet', 'listPets'])
  t.match(await rig.call('getPet', { petId: 1 }), { structuredContent: { name: 'Rex' } })
  text = JSON.stringify(petDocument(cats))
  reload(sha256(text))
  await until(async () => (await toolsOf(rig)).includes('listCats'))
  reload(sha256('another'), { exclude: [{ operationIds: ['getPet'] }] })
  await until(async () => !(await toolsOf(rig).catch((): string[] => [])).includes('getPet'))
  t.match(await statusOf(rig), /has no tools/, 'tools that the new settings may exclude do not stay')
})

await t.test('redirects, errors, large bodies and internal addresses of a document URL', async (t) => {
  let answer: object = {}
  const host = await startLoopback(() => answer)
  t.teardown(() => host.close())
  for (const [response, reason] of [
    [{ status: 302, headers: { location: `${host.url}/other` } }, /returned HTTP 302/],
    [{ status: 500 }, /returned HTTP 500/],
    [{ body: 'x'.repeat(6 * 1024 * 1024) }, /larger than 5 MiB/],
  ] as const) {
    answer = response
    const document = { url: `${host.url}/openapi.json`, sha256: sha256('') }
    const rig = await startRestRig(t, { openapi: { document } })
    await until(() => rig.log().includes('an OpenAPI document cannot be used'))
    t.match(await statusOf(rig), reason)
  }
  t.notOk(host.seen.some(({ path }) => path === '/other'))
  const before = host.seen.length
  const document = { url: `${host.url}/openapi.json`, sha256: sha256('') }
  const rig = await startRestRig(t, {
    openapi: { document },
    backend: { url: 'https://api.example.com', addresses: 'public' },
  })
  await until(() => rig.log().includes('an OpenAPI document cannot be used'))
  t.equal(host.seen.length, before, 'the address rule of the backend applies to the document')
})

await t.test('filters and overrides that match no operation are reported', async (t) => {
  const text = JSON.stringify(petDocument())
  const host = await startLoopback(() => ({ body: text }))
  t.teardown(() => host.close())
  const rig = await startRestRig(t, {
    openapi: {
      document: { url: `${host.url}/openapi.json`, sha256: sha256(text) },
      operations: { exclude: [{ operationIds: ['lisPets'] }] },
      overrides: { lisPets: { set: { 'query.limit': '5' } } },
    },
  })
  t.ok((await toolsOf(rig)).includes('listPets'))
  await until(() => rig.log().includes('an OpenAPI document was read'))
  const unused = [
    'exclude filter 1 matches no operation',
    'the override "lisPets" matches no selected operation',
  ]
  t.ok(rig.log().includes(`"unused_settings":${JSON.stringify(unused)}`))
  t.match(JSON.parse(await statusOf(rig)).problem_details, [
    {
      type: 'openapi_settings_unused',
      backend: 'pets',
      message: `OpenAPI settings of backend pets match no operation: ${unused.join('; ')}`,
      fix: 'correct or remove the filters and overrides',
    },
  ])
  const openapi = { document: { url: `${host.url}/openapi.json`, sha256: sha256(text) } }
  const corrected = { url: rig.service.url, transport: 'openapi' as const, openapi }
  rig.vmcp.reload(vmcpConfig({ pets: corrected }, { aggregation: bareNames('pets') }))
  await until(async () => JSON.parse(await statusOf(rig)).problem_details.length === 0)
})

await t.test('a rejected document is not converted again within five minutes', async (t) => {
  const file = documentFile('{')
  let now = 0
  let conversions = 0
  const reasons: string[] = []
  const document = new RestDocument({
    openapi: { document: { path: file.path } },
    addresses: 'public',
    configuredHeaders: [],
    now: () => now,
    tools: undefined,
    convert: async () => {
      conversions++
      throw new DocumentRejected('broken')
    },
    onChange: () => {},
    onConverted: () => {},
    onRejected: (reason) => void reasons.push(reason),
  })
  t.teardown(() => {
    document.close()
    file.remove()
  })
  const read = () => document.ready(new AbortController().signal)
  for (const [time, expected] of [
    [0, 1],
    [10_000, 1],
    [299_999, 1],
    [310_000, 2],
  ] as const) {
    now = time
    await t.rejects(read(), /broken/)
    t.equal(conversions, expected, `at ${time}`)
  }
  t.same(new Set(reasons), new Set(['broken']))
  file.write('{ ')
  await until(() => conversions === 3)
})

await t.test('a conversion has a time limit and a memory limit', async (t) => {
  const many = Object.fromEntries(
    Array.from({ length: 1_900 }, (_, i) => [`/p${i}`, { get: { operationId: `op${i}`, responses: {} } }]),
  )
  const task = { text: JSON.stringify(petDocument(many)), settings: {} }
  const { signal } = new AbortController()
  const slow = new Converter({}, 1)
  const small = new Converter({ heapMb: 4 })
  const usual = new Converter()
  t.teardown(() => Promise.all([slow.close(), small.close(), usual.close()]))
  await t.rejects(slow.convert('pets', task, signal), /took longer than/)
  await t.rejects(small.convert('pets', task, signal), /memory limit/)
  t.equal((await usual.convert('pets', task, signal)).tools.length, 1_902)
  t.same(
    [0, 512, 1_024, 1e6].map((mb) => conversionHeapMb(mb * 1024 * 1024)),
    [64, 204, 409, 1_024],
  )
  const stopped = AbortSignal.abort(new Error('stopped'))
  await t.rejects(usual.convert('pets', task, stopped), /stopped/)
})

await t.test('a file whose folder appears later is read, and then watched', async (t) => {
  const parent = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'))
  const path = join(parent, 'later', 'openapi.json')
  let now = 0
  const texts: string[] = []
  const document = new RestDocument({
    openapi: { document: { path } },
    addresses: 'public',
    configuredHeaders: [],
    now: () => now,
    tools: undefined,
    convert: async (text) => {
      texts.push(text)
      return { tools: [], skipped: 0, skippedLines: [], unused: [] }
    },
    onChange: () => {},
    onConverted: () => {},
    onRejected: () => {},
  })
  t.teardown(() => {
    document.close()
    rmSync(parent, { recursive: true })
  })
  const { signal } = new AbortController()
  await t.rejects(document.ready(signal), /ENOENT/)
  mkdirSync(join(parent, 'later'))
  writeFileSync(path, 'first')
  now = 10_000
  await document.ready(signal)
  t.strictSame(texts, ['first'])
  writeFileSync(path, 'second')
  await until(() => texts.length > 1)
  t.strictSame(texts, ['first', 'second'], 'a change is detected without a call')
})

await t.test('the log contains the cause of a failed conversion, and clients do not see it', async (t) => {
  const cause = new TypeError('not a function')
  for (const [thrown, reason, logged] of [
    [cause, 'the document could not be converted', cause],
    [
      new DocumentRejected('the conversion failed: TypeError', { cause }),
      'the conversion failed: TypeError',
      cause,
    ],
    [new DocumentRejected('broken'), 'broken', undefined],
  ] as const) {
    const file = documentFile()
    const rejected = Promise.withResolvers<readonly unknown[]>()
    const document = new RestDocument({
      openapi: { document: { path: file.path } },
      addresses: 'public',
      configuredHeaders: [],
      now: () => 0,
      tools: undefined,
      convert: () => Promise.reject(thrown),
      onChange: () => {},
      onConverted: () => {},
      onRejected: (...all) => rejected.resolve(all),
    })
    t.strictSame(await rejected.promise, [reason, false, logged])
    const error: Error = await document.ready(new AbortController().signal).then(
      () => new Error('ready'),
      (failure: Error) => failure,
    )
    t.notMatch(error.message, 'not a function')
    document.close()
    file.remove()
  }
  const rig = await startRestRig(t, { openapi: { document: { path: '/nowhere/openapi.json' } } })
  await until(() => rig.log().includes('an OpenAPI document cannot be used'))
  t.match(rig.log(), /"err":\{[^}]*ENOENT: no such file/)
})
