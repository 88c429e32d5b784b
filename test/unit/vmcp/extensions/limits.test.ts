/** Bounds of protocol extensions: declarations of backends, origins of pages, remembered page reads. */
import t from 'tap'
import { JsonObject } from '../../../../runtime/mcp/index.ts'
import { narrowedMeta } from '../../../../runtime/vmcp/features/apps/page-meta.ts'
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
    const meta = narrowedMeta(item, { allowedOrigins, allowedPermissions: undefined })
    const { ui } = JSON.parse(meta?.toString() ?? '') as { ui: { csp: { connectDomains: string[] } } }
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
