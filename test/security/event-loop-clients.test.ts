/**
 * Hostile requests of one client other than tool calls: initialize, lists, cursors, completions, URIs, `_meta`,
 * mirrored headers, answers to questions. No turn of the server's event loop may be long; see watched.ts.
 */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

// The tenfold run of `make fuzz` takes longer.
t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 3_600_000 : 400_000)

const filler = (n: number, text: string) => text.repeat(Math.floor(n))
const dense = (n: number) => `[${filler(n, '[],')}[]]`
const members = (n: number) =>
  `{${Array.from({ length: Math.floor(n) }, (_, i) => `"k${i}":${i}`).join(',')}}`
const deep = (n: number) => `${filler(n, '{"a":')}1${filler(n, '}')}`
const list = (n: number, item: (i: number) => object) =>
  Array.from({ length: n }, (_, i) => JSON.stringify(item(i))).join(',')

/** JSON objects as large as a message can hold, in shapes that are slow in different places. */
const SHAPES: Readonly<Record<string, (size: number) => string>> = {
  'one long text': (n) => `{"a":"${filler(7_000_000 * n, 'x')}"}`,
  'a text of escapes': (n) => `{"a":"${filler(1_000_000 * n, '\\u0000')}"}`,
  'a text of short escapes': (n) => `{"a":"${filler(3_900_000 * n, '\\n')}"}`,
  'long numbers': (n) => `{"a":[${filler(125 * n, `${'7'.repeat(60_000)},`)}1]}`,
  'a null next to a text of escapes': (n) => `{"a":null,"b":"${filler(3_900_000 * n, '\\n')}"}`,
  'a text of code points': (n) => `{"a":"${filler(1_500_000 * n, '😀')}"}`,
  'dense lists': (n) => `{"a":${dense(240_000 * n)}}`,
  'many members': (n) => members(9_900 * n),
  'too many members': (n) => members(120_000 * n),
  'deep objects': (n) => deep(100 * n),
  'a huge number': (n) => `{"a":${filler(5_000_000 * n, '7')}}`,
  'many numbers': (n) => `{"a":[${filler(120_000 * n, '1.25e300,')}1]}`,
  blanks: (n) => `{"a":${filler(6_000_000 * n, ' ')}1}`,
}

const PROMPT = '{"name":"p","arguments":[{"name":"a"}]}'
const ASKED =
  '{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}'

const mirrored = JSON.stringify({
  name: 'mirrored',
  inputSchema: {
    type: 'object',
    properties: {
      where: { type: 'string', 'x-mcp-header': 'Where' },
      deep: { type: 'object', properties: { in: { type: 'string', 'x-mcp-header': 'In' } } },
    },
  },
})

t.test('event loop: no request of one client blocks other clients', async (t) => {
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{},"prompts":{},"completions":{}}',
    tools: () => [mirrored, '{"name":"ask","inputSchema":{"type":"object"}}'],
    responses: {
      'resources/list': () => '{"resources":[]}',
      'resources/templates/list': () =>
        `{"resourceTemplates":[${list(300, (i) => ({ uriTemplate: `test://${i}/{+a}{b}/{c}`, name: 't' }))}]}`,
      'resources/read': () => '{"contents":[]}',
      'prompts/list': () => `{"prompts":[${PROMPT}]}`,
      'prompts/get': () => '{"messages":[]}',
      'completion/complete': () => '{"completion":{"values":[]}}',
      'tools/call': ({ params, id, res }) => {
        if (params['name'] !== 'ask') return '{"content":[]}'
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":${ASKED}}\n\n`)
        asking.push(() => res.end(`data: {"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\n\n`))
        return undefined
      },
    },
    before(_req, res, body) {
      if (!body.startsWith('{"jsonrpc":"2.0","id":"q"')) return false
      res.writeHead(202).end()
      for (const end of asking.splice(0)) end()
      return true
    },
  })
  const asking: (() => void)[] = []
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
  })
  const session = await openSession(url, { capabilities: { elicitation: { form: {} } } })
  const { headers } = session
  const rpc = (method: string, params: string) =>
    post(url, `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`, headers)
  const status = async (sent: ReturnType<typeof post>) => (await sent).status

  // Warms up the code that is loaded and compiled with the first request of each kind.
  await session.request('tools/list')
  await session.request('resources/read', { uri: 'test://1/a/b' })

  for (const [shape, of] of Object.entries(SHAPES)) {
    const methods: Readonly<Record<string, (n: number) => string>> = {
      initialize: (n) => `{"protocolVersion":"2025-11-25","capabilities":${of(n)},"clientInfo":${of(n / 4)}}`,
      'tools/list': (n) => `{"_meta":${of(n)}}`,
      'tools/call': (n) => `{"name":"raw_mirrored","arguments":{},"_meta":${of(n)}}`,
      'prompts/get': (n) => `{"name":"raw_p","arguments":${of(n)}}`,
      'completion/complete': (n) =>
        `{"ref":{"type":"ref/prompt","name":"raw_p"},"argument":{"name":"a","value":"b"},"context":{"arguments":${of(n)}}}`,
      'resources/read': (n) => `{"uri":"test://1/a/b","x":${of(n)}}`,
      'logging/setLevel': (n) => `{"level":"debug","x":${of(n)}}`,
      'no/such': (n) => of(n),
    }
    for (const [method, params] of Object.entries(methods))
      await row(`${method}: ${shape}`, (n) => status(rpc(method, params(n))), undefined)
    await row(`a call with mirrored headers: ${shape}`, (n) => {
      const { headers: own } = statelessRequest('tools/call', { name: 'raw_mirrored' })
      const meta = `"_meta":${JSON.stringify(metaOf())}`
      const params = `{"name":"raw_mirrored","arguments":{"where":"x","deep":{"in":"y"},"rest":${of(n)}},${meta}}`
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
      return status(post(url, body, { ...own, 'mcp-param-where': 'x', 'mcp-param-in': 'y' }))
    })
    await row(`state that is not ours: ${shape}`, (n) => {
      const { headers: own } = statelessRequest('tools/call', { name: 'raw_ask' })
      const params = `{"name":"raw_ask","arguments":${of(n)},"requestState":"${filler(1000, 'x')}","_meta":${JSON.stringify(metaOf())}}`
      return status(post(url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, own))
    })
    await row(`a question asked of a stateless client: ${shape}`, (n) => {
      const { headers: own } = statelessRequest('tools/call', { name: 'raw_ask' })
      const meta = metaOf({ elicitation: { form: {} } })
      const params = `{"name":"raw_ask","arguments":${of(n)},"_meta":${JSON.stringify(meta)}}`
      return status(post(url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, own))
    })
    await row(`a response to a server request: ${shape}`, async (n) => {
      // In a separate session, because a response that is too large leaves its request open.
      const session = await openSession(url, { capabilities: { elicitation: { form: {} } } })
      const stream = await session.open('tools/call', { name: 'raw_ask', arguments: {} })
      const question = await stream.next(({ method }) => method === 'elicitation/create')
      const answer = `{"jsonrpc":"2.0","id":${JSON.stringify(question.id)},"result":{"action":"accept","content":${of(n)}}}`
      const sent = await post(url, answer, session.headers)
      stream.close()
      await session.end()
      return sent.status
    })
  }

  const long = (n: number, text: string) => filler((6_000_000 * n) / Buffer.byteLength(text), text)
  for (const text of ['x', 'x/', '{+a}', '%2F', 'é', '"'.replace('"', '\\"')]) {
    for (const method of ['tools/list', 'resources/list', 'prompts/list'])
      await row(`${method}: a cursor of ${text}`, (n) => status(rpc(method, `{"cursor":"${long(n, text)}"}`)))
    await row(`a URI of ${text}`, (n) =>
      status(rpc('resources/read', `{"uri":"test://1/${filler((8_000 * n) / text.length, text)}"}`)),
    )
    await row(`a very long URI of ${text}`, (n) =>
      status(rpc('resources/read', `{"uri":"test://1/${long(n, text)}"}`)),
    )
    await row(`a prompt named with ${text}`, (n) => status(rpc('prompts/get', `{"name":"${long(n, text)}"}`)))
    await row(`a tool named with ${text}`, (n) => status(rpc('tools/call', `{"name":"${long(n, text)}"}`)))
    await row(`a method named with ${text}`, (n) => status(rpc(long(n, text), '{}')))
    await row(`a completion of ${text}`, (n) => {
      const ref = `{"type":"ref/resource","uri":"test://1/${long(n / 2, text)}"}`
      return status(
        rpc('completion/complete', `{"ref":${ref},"argument":{"name":"a","value":"${long(n / 2, text)}"}}`),
      )
    })
  }

  for (const name of [
    'authorization',
    'cookie',
    'mcp-session-id',
    'mcp-param-where',
    'traceparent',
    'baggage',
    'x-a',
  ]) {
    await row(`a long header ${name}`, (n) => {
      const { headers: own, body } = statelessRequest('tools/call', {
        name: 'raw_mirrored',
        arguments: { where: 'x' },
      })
      return status(
        post(url, body, { ...own, [name]: filler(180_000 * n, 'a,=b;') }).catch(
          () => ({ status: 431 }) as never,
        ),
      )
    })
  }
  await row('many headers', (n) => {
    const { headers: own, body } = statelessRequest('tools/list')
    const many = Object.fromEntries(
      Array.from({ length: Math.floor(900 * n) }, (_, i) => [`mcp-param-${i}`, filler(800, 'x')]),
    )
    return status(post(url, body, { ...own, ...many }).catch(() => ({ status: 431 }) as never))
  })
})

function metaOf(capabilities: object = {}): object {
  const { body } = statelessRequest('tools/list', {}, { capabilities })
  const { params } = JSON.parse(body) as { params: { _meta: object } }
  return params._meta
}
