/** The capabilities that clients see: everything for a virtual server, the backend's capabilities for a proxy. */
import t from 'tap'
import { openSession, post, stateless } from '../../../helpers/mcp/wire.ts'
import { json, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const changing = { listChanged: true }
const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})

await t.test(
  'advertised: a virtual server advertises everything, whatever its backends support',
  async (t) => {
    const backend = await startRawBackend({ capabilities: '{"tools":{}}' })
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const everything = {
      tools: changing,
      resources: { subscribe: true, ...changing },
      prompts: changing,
      logging: {},
      completions: {},
      extensions: { 'io.modelcontextprotocol/ui': {} },
    }
    t.same((await openSession(vmcp.url)).initialized.result?.['capabilities'], everything)
    t.same((await stateless(vmcp.url, 'server/discover')).response?.result?.['capabilities'], everything)
  },
)

await t.test('advertised: a proxy advertises what its backend supports, in both eras', async (t) => {
  for (const [has, offered] of [
    ['{"tools":{}}', { tools: changing }],
    ['{"resources":{}}', { resources: changing }],
    ['{"resources":{"subscribe":true}}', { resources: { subscribe: true, ...changing } }],
    ['{"prompts":{},"logging":{},"completions":{}}', { prompts: changing, logging: {}, completions: {} }],
    ['{}', {}],
  ] as const) {
    const backend = await startRawBackend({
      capabilities: has,
      tools: () => [],
      responses: {
        'resources/list': () => '{"resources":[]}',
        'resources/templates/list': () => '{"resourceTemplates":[]}',
        'prompts/list': () => '{"prompts":[]}',
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url }, {}, { advertise: 'backends' })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    t.same((await openSession(vmcp.url)).initialized.result?.['capabilities'], offered, has)
    t.same((await stateless(vmcp.url, 'server/discover')).response?.result?.['capabilities'], offered, has)
  }
})

await t.test('advertised: a proxy forwards the instructions of its backend', async (t) => {
  const result = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'raw', version: '1' },
    instructions: 'Ask "first".',
  }
  const backend = await startRawBackend({
    before(_req, res, body) {
      if (!body.includes('"initialize"')) return false
      json(res, JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result }))
      return true
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, {}, { advertise: 'backends' })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  t.equal((await openSession(vmcp.url)).initialized.result?.['instructions'], 'Ask "first".')
})

await t.test(
  'advertised: a proxy whose backend is down reports it instead of advertising anything',
  async (t) => {
    const vmcp = await startTestVmcp({ raw: 'http://127.0.0.1:1/mcp' }, {}, { advertise: 'backends' })
    t.teardown(() => vmcp.close())
    const away = { status: 503, response: { error: { code: -32603, message: /raw/ } } }
    t.match(await post(vmcp.url, initialize), away)
    t.match(await stateless(vmcp.url, 'server/discover'), away)
  },
)
