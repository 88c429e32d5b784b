/** Content that needs no change passes through unchanged, in both directions and for both client eras. */
import t from 'tap'
import { openSession, post, stateless } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

proves('3.config.aggregation.conflictResolution.prefix')

const ARGUMENTS = '{ "n":123456789012345678901234567890, "f":1e400,"s":"\\u00e9\\/","deep":[{"x":null}] }'
const RESULT =
  '{"content":[{"type":"hologram","data":12345678901234567890,"_meta":{"a/b":1}}],"structuredContent":{"l":[1,2.50]},"x-unknown":{"y":1.0},"_meta":{"com.example/k":9007199254740993}}'
const TOOL =
  '{"name":"echo","title":"Echo","icons":[{"src":"data:,"}],"description":"Echoes","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","maximum":1E+2},"_meta":{"big":9007199254740993},"execution":{"taskSupport":"forbidden"}}'

t.test('arguments, results and ids keep their bytes', async (t) => {
  const backend = await startRawBackend({ tools: () => [TOOL], responses: { 'tools/call': () => RESULT } })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const call = `{"jsonrpc":"2.0","id":98765432109876543210,"method":"tools/call","params":{"name":"raw_echo","arguments":${ARGUMENTS},"_meta":{"com.example/trace":"t"}}}`
  const response = await post(vmcp.url, call, session.headers)
  t.equal(response.text, `{"jsonrpc":"2.0","id":98765432109876543210,"result":${RESULT}}`)
  const received = backend.requests.find(({ method }) => method === 'tools/call')
  t.match(received?.body, ARGUMENTS)
  t.match(received?.body, '"_meta":{"com.example/trace":"t"}')
  t.match(received?.body, '"name":"echo"')
})

t.test('a listed tool keeps every member except its name', async (t) => {
  const backend = await startRawBackend({ tools: () => [TOOL] })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const { text } = await session.request('tools/list')
  t.match(text, TOOL.replace('"name":"echo"', '"name":"raw_echo"'))
})

t.test('a stateless client gets the same content in the stateless format', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => RESULT } })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { text, response } = await stateless(vmcp.url, 'tools/call', { name: 'raw_echo' })
  t.match(text, '"data":12345678901234567890')
  t.match(text, '"structuredContent":{"l":[1,2.50]},"x-unknown":{"y":1.0}')
  t.match(text, '"com.example/k":9007199254740993')
  t.equal(response?.result?.['resultType'], 'complete')
  const received = backend.requests.find(({ method }) => method === 'tools/call')
  t.notMatch(received?.body, 'io.modelcontextprotocol', 'the client’s own metadata is not forwarded')
})

t.test('a result of several megabytes passes, as JSON and as an event stream', async (t) => {
  const large = JSON.stringify({ content: [{ type: 'text', text: 'é"\\\n'.repeat(500_000) }] })
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ params, id, res }) => {
        const { how }: { how?: string } = params['arguments'] ?? {}
        if (how !== 'stream') return large
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${large}}\n\n`)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  for (const how of ['json', 'stream']) {
    const { response } = await session.request('tools/call', { name: 'raw_echo', arguments: { how } })
    t.equal(JSON.stringify(response?.result), large, how)
  }
})

t.test('an error of a backend is forwarded unchanged', async (t) => {
  const error = '{"code":-31999,"message":"out of paper","data":{"tray":12345678901234567890}}'
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ id, res }) => {
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(`{"jsonrpc":"2.0","id":${id},"error":${error}}`)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/call', { name: 'raw_echo' })).text, error)
  t.match((await stateless(vmcp.url, 'tools/call', { name: 'raw_echo' })).text, error)
})

t.test('progress keeps the token of the client, whatever its type and size', async (t) => {
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ params, id, res }) => {
        const { progressToken }: { progressToken?: unknown } = params['_meta'] ?? {}
        const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(progressToken)},"progress":0.5,"x":1.0}}`
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(`data: ${progress}\n\ndata: {"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\n\n`)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  for (const token of ['"text"', '0', '98765432109876543210']) {
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw_echo","_meta":{"progressToken":${token}}}}`
    const { text } = await post(vmcp.url, call, session.headers)
    t.match(text, `"params":{"progressToken":${token},"progress":0.5,"x":1.0}`)
  }
})
