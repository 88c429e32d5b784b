/** Bounds of protocol extensions: declarations of backends, origins of pages, remembered page reads. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { GatehouseError, type Pinning, type RuntimeToolLock } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../../runtime/mcp/index.ts'
import type { Events } from '../../../../runtime/observe/index.ts'
import { AppListings } from '../../../../runtime/vmcp/features/apps/listing.ts'
import { makePageCheck } from '../../../../runtime/vmcp/features/apps/page-locks.ts'
import { hintsIn } from '../../../../runtime/policy/index.ts'
import { readToolUi } from '../../../../runtime/vmcp/model/catalog/tool-ui.ts'
import { withChangedResources } from '../../../../runtime/vmcp/catalog/result-resources.ts'
import { resultChanges } from '../../../../runtime/vmcp/features/apps/rewrite.ts'
import { narrowedMeta } from '../../../../runtime/vmcp/features/apps/page-meta.ts'
import { PageDrift } from '../../../../runtime/vmcp/features/apps/page-drift.ts'
import { PageReads } from '../../../../runtime/vmcp/features/apps/page-reads.ts'
import { readServerInfo, resumedServer } from '../../../../runtime/vmcp/backends/server-info.ts'
import { readAbilities, restoreAbilities } from '../../../../runtime/vmcp/model/client.ts'
import { ExtensionSet, readServerExtensions } from '../../../../runtime/vmcp/model/extensions.ts'
import type { OperationClient } from '../../../../runtime/vmcp/model/session.ts'

const ui = 'io.modelcontextprotocol/ui'

t.test('extensions of a backend: at most 32, and 16 KiB', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`a/b${i}`, {}]))
  const { extensions, problems } = readServerExtensions(many)
  t.equal(extensions.size, 32)
  t.match(problems, [/only the first 32 extensions are used/])
  const large = readServerExtensions({ 'a/small': {}, 'a/large': { x: 'x'.repeat(17_000) }, 'a/next': {} })
  t.same([...large.extensions.keys()], ['a/small'])
  t.match(large.problems, [/16384 bytes/])
  t.equal(readServerExtensions([]).extensions.size, 0)
  t.equal(readServerExtensions({ 'a/b': true }).extensions.size, 0, 'settings are objects')
})

t.test('extensions of a backend: kept from initialize, and for resumed sessions', async (t) => {
  const capabilities = { tools: {}, extensions: { [ui]: {}, 'a/b': { n: 1 } } }
  const server = readServerInfo(Buffer.from(JSON.stringify({ protocolVersion: '2025-11-25', capabilities })))
  t.same(Object.fromEntries(server.extensions), capabilities.extensions)
  const session = { sessionId: 's', protocolVersion: '2025-11-25', logging: false, binding: 'b' }
  const resumed = resumedServer({ ...session, extensions: capabilities.extensions })
  t.same(Object.fromEntries(resumed.extensions), capabilities.extensions)
  t.equal(resumedServer(session).extensions.size, 0)
})

t.test(
  'extensions of a client: other members keep their bytes, and stored sessions keep extensions',
  async (t) => {
    const raw = Buffer.from(
      `{"roots":{},"extensions":{"${ui}":{"big":12345678901234567890},"a/b":{}},"x":1.50}`,
    )
    const abilities = readAbilities(raw, 'session', new ExtensionSet())
    t.equal(
      abilities.raw.toString(),
      `{"roots":{},"extensions":{"${ui}":{"big":12345678901234567890}},"x":1.50}`,
    )
    t.same([...abilities.extensions], [ui])
    t.same([...restoreAbilities(abilities.raw).extensions], [ui])
    t.equal(restoreAbilities(abilities.raw).signature, abilities.signature)
    t.same(
      JSON.parse(abilities.plain?.raw.toString() ?? ''),
      { roots: {}, extensions: { [ui]: { mimeTypes: ['text/html;profile=mcp-app'] } } },
      'many kinds of clients share one declaration',
    )
    t.throws(() =>
      readAbilities(Buffer.from(`{"extensions":{"${ui}":{},"${ui}":{}}}`), 'session', new ExtensionSet()),
    )
  },
)

t.test('pages: at most 100 origins of one kind remain, without suffixes of allowed hosts', async (t) => {
  const origins = Array.from({ length: 150 }, (_, i) => `https://h${i}.example`)
  const metaOf = (connectDomains: unknown, allowedOrigins?: readonly string[]) => {
    const item = new JsonObject(Buffer.from(JSON.stringify({ _meta: { ui: { csp: { connectDomains } } } })))
    const limits = {
      allowedOrigins: allowedOrigins && new Set(allowedOrigins),
      allowedPermissions: undefined,
    }
    const meta = narrowedMeta(item, limits)
    const { ui } = JSON.parse(meta?.json.toString() ?? '') as { ui: { csp: { connectDomains: string[] } } }
    return ui.csp.connectDomains
  }
  t.equal(metaOf(origins).length, 100)
  t.same(metaOf('https://a.example'), [], 'a text is not a list')
  const allowed = ['https://*.good.example']
  const given = [
    'https://a.good.example',
    'https://evilgood.example',
    'http://a.good.example',
    'https://*.good.example',
  ]
  t.same(metaOf(given, allowed), ['https://a.good.example', 'https://*.good.example'])
})

t.test('page reads: kept for 15 minutes, per caller, and not for callers without a token', async (t) => {
  let now = 0
  const reads = new PageReads(() => now)
  const client = (key: string, token: string | undefined): OperationClient =>
    ({ era: 'stateless', session: undefined, caller: { key, token } }) as unknown as OperationClient
  const [alice, bob, anonymous] = [client('alice', 't'), client('bob', 't'), client('anonymous', undefined)]
  reads.record(alice, 'one')
  reads.record(alice, 'two')
  reads.record(anonymous, 'one')
  t.equal(reads.latest(alice, ['one', 'two']), 'two')
  t.equal(reads.latest(alice, ['one', 'three']), 'one')
  t.equal(reads.latest(bob, ['one', 'two']), undefined)
  t.equal(reads.latest(anonymous, ['one']), undefined)
  for (let i = 0; i < 32; i++) reads.record(alice, `more-${i}`)
  t.equal(reads.latest(alice, ['one', 'two']), undefined, 'at most 32 backends')
  now = 15 * 60_000 + 1
  t.equal(reads.latest(alice, ['more-31']), undefined)
})

t.test('pages: the form of the policy that ChatGPT reads is narrowed too', async (t) => {
  const meta = {
    'openai/widgetDomain': 'https://other.example',
    'openai/widgetCSP': {
      connect_domains: [
        'https://a.example',
        'https://b.example',
        "https://a.example; script-src 'unsafe-eval'",
      ],
      redirect_domains: ['https://b.example'],
      other: ['https://b.example'],
    },
    kept: 1,
  }
  const item = new JsonObject(Buffer.from(JSON.stringify({ _meta: meta })))
  const limits = { allowedOrigins: new Set(['https://a.example']), allowedPermissions: undefined }
  t.same(JSON.parse(narrowedMeta(item, limits)?.json.toString() ?? ''), {
    'openai/widgetCSP': { connect_domains: ['https://a.example'], redirect_domains: [] },
    kept: 1,
  })
  const text = new JsonObject(Buffer.from('{"_meta":{"openai/widgetCSP":"x"}}'))
  t.equal(narrowedMeta(text, limits)?.json.toString(), '{}')
})

t.test('pages: lists of origins above 64 KiB are removed without being read', async (t) => {
  const connectDomains = Array.from({ length: 5_000 }, (_, i) => `https://h${i}.example`)
  const item = new JsonObject(Buffer.from(JSON.stringify({ _meta: { ui: { csp: { connectDomains } } } })))
  const meta = narrowedMeta(item, { allowedOrigins: undefined, allowedPermissions: undefined })
  t.equal(meta?.json.toString(), '{"ui":{"csp":{"connectDomains":[]}}}')
  t.same(meta?.affected, ['connectDomains'])
})

t.test('pages: the lists from which entries were removed are named', async (t) => {
  const limits = { allowedOrigins: new Set(['https://a.example']), allowedPermissions: ['camera'] }
  const affected = (meta: unknown) =>
    narrowedMeta(new JsonObject(Buffer.from(JSON.stringify({ _meta: meta }))), limits)?.affected
  const allowed = { csp: { connectDomains: ['https://a.example'] }, permissions: { camera: {} } }
  t.same(affected({ ui: { ...allowed, domain: 'b.example' } }), [])
  const [origins, permissions] = [['https://a.example', 'https://b.example'], { camera: {}, microphone: {} }]
  t.same(affected({ ui: { ...allowed, permissions } }), ['permissions'])
  t.same(affected({ ui: { csp: { connectDomains: origins, frameDomains: 'x', resourceDomains: [] } } }), [
    'connectDomains',
    'frameDomains',
  ])
  t.same(affected({ 'openai/widgetCSP': { redirect_domains: origins } }), ['redirect_domains'])
  t.same(affected({ ui: { csp: 1, permissions: 1 }, 'openai/widgetCSP': 1 }), [
    'csp',
    'permissions',
    'openai/widgetCSP',
  ])
})

t.test(
  'pages: each narrowed page is reported once, at most 100 per backend, without its query',
  async (t) => {
    const seen: unknown[] = []
    const listings = new AppListings({
      backends: undefined,
      allowedOrigins: undefined,
      allowedPermissions: undefined,
      reads: new PageReads(() => 0),
      drift: new PageDrift({ emit: () => {} }, () => 0),
      events: { emit: (type, fields) => void seen.push([type, fields]) },
    })
    const [one, two] = [listings.rulesFor('one'), listings.rulesFor('two')]
    for (const uri of ['ui://user:secret@a/b?key=secret#secret', 'ui://a/b'])
      one.onNarrowed(uri, ['frameDomains'])
    t.same(seen, [['page_narrowed', { backend: 'one', page: 'ui://a/b', affected: ['frameDomains'] }]])
    for (let i = 0; i < 200; i++) one.onNarrowed(`ui://${i}`, [])
    t.equal(seen.length, 100)
    two.onNarrowed('ui://a/b', [])
    t.equal(seen.length, 101, 'each backend has its own limit')
  },
)

t.test('visibility: policies see appOnly for every tool that is hidden from models', async (t) => {
  const visibilities = [undefined, ['model'], ['app'], ['app', 'model'], [], 'app', 'model', null, 1, {}]
  for (const visibility of visibilities) {
    const _meta = { ui: { visibility } }
    const ui = readToolUi(new JsonObject(Buffer.from(JSON.stringify({ _meta }))))
    const isHidden = ui?.isForModel === false
    t.equal(hintsIn({}, _meta).appOnly === true, isHidden, JSON.stringify(visibility))
  }
})

t.test('results: large results are rewritten in slices', async (t) => {
  const link = '{"type":"resource_link","uri":"ui://a","name":"a"}'
  const bytes = Buffer.from(`{"content":[1,${Array(20_000).fill(link).join(',')},{"type":"text"}]}`)
  const rules = {
    allowedOrigins: undefined,
    allowedPermissions: undefined,
    addressOf: (uri: string) => uri.replace('ui://', 'ui://b/'),
    onNarrowed: () => {},
  }
  const work = withChangedResources('tools/call', bytes, resultChanges(rules))
  let turns = 0
  let step = work.next()
  for (; !step.done; step = work.next()) turns++
  t.ok(turns >= 2 * Math.floor(bytes.length / (128 * 1024)), 'the work yields for each slice')
  t.equal(step.value.toString(), bytes.toString().replaceAll('ui://a', 'ui://b/a'))
})

t.test('page locks: a page above 4 MiB counts as changed', async (t) => {
  const html = 'x'.repeat(4 * 1024 * 1024)
  const digest = `sha256:${createHash('sha256').update(html).digest('hex')}`
  const lock = { backend: 'a', tools: [], pages: [{ uri: 'ui://a', digest }] }
  const pinning = { onChanged: 'block', onNew: 'observe', noLock: 'serve' } as unknown as Pinning
  const drift = new PageDrift({ emit: () => {} }, () => 0)
  const check = makePageCheck(
    { pinning, toolLocks: [lock as unknown as RuntimeToolLock] },
    drift,
    () => new GatehouseError('FORBIDDEN'),
  )
  const entry = { key: 'ui://a', backend: 'a', original: 'ui://a', json: Buffer.from('{}') }
  const result = (text: string) => Buffer.from(JSON.stringify({ contents: [{ uri: 'ui://a', text }] }))
  t.throws(() => check?.(entry, 'ui://a', result(html)), { code: 'FORBIDDEN' })
  t.same(drift.driftOf('a'), [{ page: 'ui://a', state: 'changed' }])
  t.throws(() => check?.(entry, 'ui://a', result('small')), { code: 'FORBIDDEN' })
})

t.test('page locks: at most 1,000 pages of a backend are reported, without their queries', async (t) => {
  const seen: unknown[] = []
  const drift = new PageDrift({ emit: (type, fields) => void seen.push([type, fields]) }, () => 0)
  drift.record('a', 'ui://x', 'new', { quiet: false })
  t.same(seen, [], 'a backend without a lock is not reported')
  drift.setLocks(new Map([['a', { pages: [] }]]))
  drift.record('a', 'ui://user:secret@a/b?key=secret#secret', 'new', { quiet: true })
  const report = { backend: 'a', compared: true, changed: 0, new: 1, quiet: true }
  t.same(seen, [['pages_drifted', { ...report, examples: ['page ui://a/b is new'] }]])
  for (let i = 0; i < 2_000; i++) drift.record('a', `ui://${i}`, 'new', { quiet: true })
  t.equal(drift.driftOf('a')?.length, 1_000)
  t.equal(seen.length, 1_000)
})

t.test('page locks: a page that varies is reported until it has matched for 10 minutes', async (t) => {
  const seen: number[] = []
  let now = 0
  const emit = (_type: string, { changed }: { readonly changed?: number }) => void seen.push(changed ?? -1)
  const drift = new PageDrift({ emit: emit as Events['emit'] }, () => now)
  drift.setLocks(new Map([['a', { pages: [] }]]))
  const record = (state: 'pinned' | 'changed') => drift.record('a', 'ui://a', state, { quiet: false })
  for (let i = 0; i < 20; i++) {
    record('changed')
    record('pinned')
    now += 60_000
  }
  t.same(seen, [1])
  now += 10 * 60_000
  record('pinned')
  t.same(seen, [1, 0])
})
