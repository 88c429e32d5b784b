/** MCP Apps: hostile servers cannot affect other servers, replace their pages or avoid locks. */
import t from 'tap'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { clientOf, memberOf, names } from './clock-servers.ts'

await t.test('apps: duplicate members in _meta affect only their own item', async (t) => {
  const tool = (meta: string) => `{"name":"bad","inputSchema":{"type":"object"},"_meta":${meta}}`
  const resource = (meta: string) => `{"uri":"ui://bad","name":"bad","_meta":${meta}}`
  for (const [tools, resources] of [
    [tool('{"ui":{"resourceUri":"ui://a"},"ui":{}}'), ''],
    [tool('{"ui":{"resourceUri":"ui://a","resourceUri":"ui://b"}}'), ''],
    ['', resource('{"ui":{"csp":{"frameDomains":[],"frameDomains":[]}}}')],
    ['', resource('{"ui":{"permissions":{"camera":{},"camera":{}}}}')],
    ['', resource('{"openai/widgetCSP":{"connect_domains":[],"connect_domains":[]}}')],
  ]) {
    const bad = await startRawBackend({
      capabilities: '{"tools":{},"resources":{}}',
      responses: {
        'tools/list': () => `{"tools":[${tools}]}`,
        'resources/list': () => `{"resources":[${resources}]}`,
        'resources/templates/list': () => '{"resourceTemplates":[]}',
      },
    })
    const good = await startRawBackend()
    const vmcp = await startTestVmcp({ bad: bad.url, good: good.url })
    t.teardown(() => Promise.all([vmcp.close(), bad.close(), good.close()]))
    const request = await clientOf('session', vmcp.url)
    t.same(
      (await names(request)).map(({ name }) => name),
      ['good_echo'],
    )
    t.same(memberOf(await request('resources/list'), 'result', 'resources'), [])
    const status = await (await fetch(`${new URL(vmcp.url).origin}/status`)).text()
    t.match(status, /bad.*is left out/, 'the item is reported')
  }
})
