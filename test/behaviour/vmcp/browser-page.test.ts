/** A browser at the server's address gets a page that describes the server. MCP clients get the usual responses. */
import t from 'tap'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

t.test('a browser at / and at /mcp gets a page with the server and how to connect', async (t) => {
  const vmcp = await startTestVmcp({}, { name: 'team<b>' })
  t.teardown(() => vmcp.close())
  for (const path of ['/', '/mcp']) {
    const response = await fetch(vmcp.origin + path, { headers: browser })
    const text = await response.text()
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), 'text/html')
    t.match(response.headers.get('content-security-policy'), "default-src 'none'")
    t.match(text, /gatehouse proxy stdio/)
    t.notMatch(text, '<b>')
  }
})

t.test('MCP clients get no page', async (t) => {
  const vmcp = await startTestVmcp({})
  t.teardown(() => vmcp.close())
  t.equal((await fetch(vmcp.origin)).status, 404)
  const stream = await fetch(vmcp.url, { headers: { accept: 'text/html, text/event-stream' } })
  t.not(stream.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal((await fetch(vmcp.url, { method: 'POST', headers: browser })).status, 415)
})
