/** Backends with hostile lists: endless, unreadable, expanding, or deeply nested. */
import t from 'tap'
import { openSession } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

/** Lists contain the available items when one backend fails. */
const LENIENT = { operational: { failureHandling: { partialFailureMode: 'best_effort' } } }

t.test('endless lists are abandoned, and their first pages are kept', async (t) => {
  let page = 0
  const item = '{"name":"one","inputSchema":{"type":"object"}}'
  const endless: Record<string, () => string> = {
    'the same cursor forever': () => `{"tools":[${item}],"nextCursor":"again"}`,
    'a new page forever': () => `{"tools":[${item}],"nextCursor":"${page++}"}`,
  }
  for (const [what, list] of Object.entries(endless)) {
    const backend = await startRawBackend({ responses: { 'tools/list': list } })
    const vmcp = await startTestVmcp({ raw: backend.url })
    const session = await openSession(vmcp.url)
    t.match((await session.request('tools/list')).response?.result, { tools: [{ name: 'raw_one' }] }, what)
    t.ok(backend.requests.filter(({ method }) => method === 'tools/list').length < 50, what)
    await Promise.all([vmcp.close(), backend.close()])
  }
})

t.test('too many items on one page are rejected', async (t) => {
  const tools = Array.from({ length: 11_000 }, (_, i) => `{"name":"t${i}","inputSchema":{"type":"object"}}`)
  const backend = await startRawBackend({ tools: () => tools })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/list')).response?.error, { code: -32603, message: /raw/ })
})

t.test('one backend’s unreadable tools are left out, and everything else stays', async (t) => {
  const bad = await startRawBackend({
    tools: () => [
      '{"name":"twice","inputSchema":{"type":"object","type":"object"}}',
      '{"name":"notes","inputSchema":{"type":"object"},"annotations":{"title":"a","title":"b"}}',
      '{"name":"","inputSchema":{"type":"object"}}',
      '{"inputSchema":{"type":"object"}}',
      '"text"',
      '{"name":"fine","inputSchema":"none"}',
      '{"name":"fine","inputSchema":{"type":"object"}}',
      `{"name":"nested","inputSchema":${'{"properties":{"x":'.repeat(60)}{}${'}}'.repeat(60)}}`,
    ],
  })
  const good = await startRawBackend()
  const vmcp = await startTestVmcp({ bad: bad.url, good: good.url })
  t.teardown(() => Promise.all([vmcp.close(), bad.close(), good.close()]))
  const session = await openSession(vmcp.url)
  const { response } = await session.request('tools/list')
  const tools = response?.result?.['tools'] as { name: string }[]
  t.same(
    tools.map(({ name }) => name),
    ['bad_fine', 'bad_nested', 'good_echo'],
  )
})

t.test('schema bombs cost no more than their length', async (t) => {
  const references = Array.from({ length: 5_000 }, (_, i) => `"d${i}":{"$ref":"#/$defs/d${i + 1}"}`).join(',')
  const branches = Array.from({ length: 20_000 }, () => '{"$ref":"#"}').join(',')
  const backend = await startRawBackend({
    tools: () => [
      `{"name":"circle","inputSchema":{"type":"object","$defs":{${references}},"$ref":"#/$defs/d0"}}`,
      `{"name":"wide","inputSchema":{"type":"object","anyOf":[${branches}]}}`,
      '{"name":"far","inputSchema":{"type":"object","$ref":"http://127.0.0.1:1/schema.json"}}',
      '{"name":"slow","inputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"^(a+)+$"}}}}',
      `{"name":"marked","inputSchema":${'{"properties":{"x":'.repeat(80)}{"x-mcp-header":"A"}${'}}'.repeat(80)}}`,
    ],
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const { text } = await session.request('tools/list')
  for (const name of ['circle', 'wide', 'far', 'slow']) t.ok(text.includes(`"raw_${name}"`), name)
  t.notOk(text.includes('raw_marked'), 'a header annotation that is too deep is ignored')
  const called = await session.request('tools/call', {
    name: 'raw_slow',
    arguments: { x: `${'a'.repeat(200)}!` },
  })
  t.match(called.response?.result, { content: [{ type: 'text' }] }, 'the backend checks the arguments')
})

t.test('excessive nesting in a list or a result is an error of that backend alone', async (t) => {
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  let inList = true
  const bad = await startRawBackend({
    tools: () => [inList ? `{"name":"t","inputSchema":{"x":${deep}}}` : '{"name":"t","inputSchema":{}}'],
    responses: { 'tools/call': () => `{"content":[],"x":${deep}}` },
  })
  const good = await startRawBackend()
  const vmcp = await startTestVmcp({ bad: bad.url, good: good.url }, LENIENT)
  t.teardown(() => Promise.all([vmcp.close(), bad.close(), good.close()]))
  const session = await openSession(vmcp.url)
  const listed = (await session.request('tools/list')).text
  t.ok(listed.includes('good_echo'))
  t.notOk(listed.includes('bad_t'))
  inList = false
  const second = await startTestVmcp({ bad: bad.url, good: good.url }, LENIENT)
  t.teardown(() => second.close())
  const other = await openSession(second.url)
  t.match((await other.request('tools/call', { name: 'bad_t' })).response?.result, { isError: true })
  t.match((await other.request('tools/call', { name: 'good_echo' })).response?.result, { content: [{}] })
})
