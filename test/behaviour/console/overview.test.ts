/** The console's views of a running server: the server, its backends and its tools. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { startTestConsole } from '../../helpers/console/console.ts'

t.test('me and overview: the user and the state of the server', async (t) => {
  const fixture = await startFixture()
  const console = await startTestConsole({ notes: fixture.url })
  t.teardown(() => Promise.all([console.close(), fixture.close()]))
  await openSession(console.vmcp.url)
  const me = await console.api('me')
  t.match(me.json, { server: 'test-vmcp', version: '1.2.3', anonymous: true, freshLogin: true })
  t.ok((me.json['permissions'] as string[]).includes('overview'))
  const overview = await console.api('overview')
  t.equal(overview.status, 200)
  t.match(overview.json, { sessions: 1, backends: [{ name: 'notes', transport: 'streamable-http' }] })
  t.match(overview.headers.get('content-security-policy'), /default-src 'none'.*require-trusted-types-for/)
  t.equal(overview.headers.get('cache-control'), 'no-store')
})

t.test('tools: paging, search, full detail, and hidden tools with their rule', async (t) => {
  const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: 'object' } })
  const tools = [
    tool('apple', 'a fruit'),
    tool('pear', 'hidden \u{e0041} text'),
    { ...tool('plum', 'blue'), annotations: { readOnlyHint: true } },
  ].map((one) => JSON.stringify(one))
  const backend = await startRawBackend({ tools: () => tools })
  const console = await startTestConsole(
    { shop: backend.url },
    {
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
        tools: [{ workload: 'shop', filter: ['apple', 'pear'] }],
      },
    },
  )
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  const first = await console.api('tools?limit=2')
  t.match(first.json, {
    total: 3,
    items: [
      { name: 'shop_apple', original: 'apple', backend: 'shop', suspicious: false },
      { name: 'shop_pear', suspicious: true },
    ],
  })
  const second = await console.api(`tools?limit=2&cursor=${String(first.json['next'])}`)
  t.match(second.json, {
    items: [
      { name: 'shop_plum', hints: { readOnly: true }, hidden: /filter for shop does not include plum/ },
    ],
  })
  t.notOk(second.json['next'])
  t.match((await console.api('tools?text=FRUIT')).json, { total: 1, items: [{ name: 'shop_apple' }] })
  t.match((await console.api('tools/shop_apple')).json, { inputSchema: '{"type":"object"}', raw: /a fruit/ })
  t.match((await console.api('tools/nothing')).json, { status: 404, code: 'NOT_FOUND' })
  t.match((await console.api('tools?limit=201')).json, { status: 400, title: /from 1 to 200/ })
})
