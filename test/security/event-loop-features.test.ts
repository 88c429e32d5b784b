/**
 * Scripts, tool search, policies and long lists under hostile input: no turn of the server's event loop is long; see
 * watched.ts.
 */
import t, { type Test } from 'tap'
import { startTokenIssuer } from '../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post, stateless, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(400_000)

const filler = (n: number, text: string) => text.repeat(Math.max(1, Math.floor(n)))
const text = (value: string) => JSON.stringify({ content: [{ type: 'text', text: value }] })
const structured = (json: string) => `{"content":[],"structuredContent":${json}}`

/** What a tool may give back, by name of the tool; larger with each call's argument `n`. */
const RESULTS: Readonly<Record<string, (n: number) => string>> = {
  long_text: (n) => text(filler(12_000_000 * n, 'x')),
  code_points: (n) => text(filler(1_500_000 * n, '😀')),
  dense: (n) => structured(`{"l":[${filler(240_000 * n, '[],')}[]]}`),
  numbers: (n) => structured(`{"l":[${filler(240_000 * n, '1.5,')}1]}`),
  members: (n) =>
    structured(`{${Array.from({ length: 9_000 * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}`),
  many_members: (n) =>
    structured(`{"o":{${Array.from({ length: 120_000 * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}}`),
  items: (n) =>
    `{"content":[${filler(60_000 * n, '{"type":"text","text":"a"},')}{"type":"text","text":"b"}]}`,
  failing_items: (n) =>
    `{"isError":true,"content":[${filler(60_000 * n, '{"type":"text","text":"a"},')}{"type":"text","text":"b"}]}`,
  json_text: (n) => text(`[${filler(200_000 * n, '[],')}[]]`),
  deep: (n) => structured(`${filler(120 * n, '{"a":')}1${filler(120 * n, '}')}`),
}

/** Scripts, with the size as `n`. */
const SCRIPTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.keys(RESULTS).map((name) => [`the result ${name}`, `x = ${name}(n=n)\nreturn len(str(x))`]),
  ),
  ...Object.fromEntries(
    Object.keys(RESULTS).map((name) => [`the result ${name}, returned`, `return ${name}(n=n)`]),
  ),
  'a large text returned': 'return "x" * int(8000000 * n)',
  'a large text of quotes returned': 'return "\\"\\\\" * int(2000000 * n)',
  'a large list returned': 'return [[] for i in range(int(80000 * n))]',
  'a large dict returned': 'return {str(i): i for i in range(int(60000 * n))}',
  'a deep value returned': 'x = []\nfor i in range(int(190 * n)): x = [x]\nreturn x',
  'many lines': 'for i in range(20000): print(i)',
  'long lines': 'for i in range(20): print("x" * 500000)',
  'many calls': 'return len(parallel([lambda: small(n=1) for i in range(200)]))',
  'large arguments': 'return len(str(small(a="x" * int(8000000 * n))))',
  'dense arguments': 'return len(str(small(a=[[] for i in range(int(80000 * n))])))',
  'wide arguments': 'return len(str(small(**{"k" + str(i): i for i in range(int(50000 * n))})))',
  'an unknown tool of a long name': 'return call_tool("x" * int(4000000 * n))',
  'a long error': 'fail("x" * int(8000000 * n))',
}

function backendOf(t: Test, more: readonly string[] = []) {
  const tool = (name: string) => `{"name":"${name}","description":"${name}","inputSchema":{"type":"object"}}`
  return startRawBackend({
    tools: () => [...Object.keys(RESULTS), 'small'].map(tool).concat(more),
    responses: {
      'tools/call': ({ params }) => {
        const { n = 1 } = (params['arguments'] ?? {}) as { n?: number }
        return (RESULTS[String(params['name'])] ?? (() => text('small')))(n)
      },
    },
  }).then((backend) => {
    t.teardown(() => backend.close())
    return backend
  })
}

const rpc = (method: string, params: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
const status = async (sent: ReturnType<typeof post>) => (await sent).status

t.test('event loop: no result of a tool keeps the server from others', async (t) => {
  const backend = await backendOf(t)
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
  })
  const session = await openSession(url)
  await session.request('tools/call', { name: 'small' })
  for (const name of Object.keys(RESULTS)) {
    await row(
      `a call of ${name}`,
      (n) => status(session.request('tools/call', { name, arguments: { n } })),
      200,
    )
    await row(
      `a stateless call of ${name}`,
      (n) => status(stateless(url, 'tools/call', { name, arguments: { n } })),
      200,
    )
  }
})

t.test('event loop: no script keeps the server from others', async (t) => {
  const backend = await backendOf(t)
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    codeMode: { enabled: true, stepLimit: 5_000_000 },
  })
  const session = await openSession(url)
  const run = (script: string, n: number) =>
    status(session.request('tools/call', { name: 'execute_tool_script', arguments: { script, data: { n } } }))
  await run('return small()', 1)
  for (const [what, script] of Object.entries(SCRIPTS))
    await row(`script: ${what}`, (n) => run(script, n), 200)
  const data: Readonly<Record<string, (n: number) => string>> = {
    'a long text': (n) => `{"a":"${filler(7_000_000 * n, 'x')}"}`,
    'dense lists': (n) => `{"a":[${filler(240_000 * n, '[],')}[]]}`,
    'many names': (n) => `{${Array.from({ length: 9_000 * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}`,
  }
  for (const [what, of] of Object.entries(data))
    await row(`data: ${what}`, (n) => {
      const args = `{"script":"return 1","data":${of(n)}}`
      return status(
        post(url, rpc('tools/call', `{"name":"execute_tool_script","arguments":${args}}`), session.headers),
      )
    })
  await row('a script of many lines', (n) => run(`x = 1\n${filler(40_000 * n, 'x=1\n')}`, 1))
  await row('a script that never ends its brackets', (n) => run(filler(250_000 * n, '('), 1))
})

t.test('event loop: no search for tools keeps the server from others', async (t) => {
  const many = Array.from({ length: 5_000 }, (_, i) =>
    JSON.stringify({
      name: `tool_${i}`,
      description: `Copies file number ${i} from the left to the right and says how long it took`,
      inputSchema: { type: 'object', properties: { [`path${i % 50}`]: { type: 'string' } } },
    }),
  )
  const backend = await backendOf(t, many)
  const backends = [{ name: 'raw', url: backend.url, transport: 'streamable-http' }]
  const { url, row } = await startWatched(t, { backends, optimizer: { maxToolsToReturn: 50 } })
  const session = await openSession(url)
  const find = (args: Record<string, unknown>) =>
    status(session.request('tools/call', { name: 'find_tool', arguments: args }))
  await row('the first search builds the index', () => find({ tool_description: 'copy' }), 200)
  const queries: Readonly<Record<string, (n: number) => string>> = {
    'one long word': (n) => filler(7_000_000 * n, 'x'),
    'many words': (n) => filler(900_000 * n, 'copy it '),
    'many different words': (n) => Array.from({ length: 400_000 * n }, (_, i) => `w${i}`).join(' '),
    'all words of the tools': () => 'copies file number from the left to the right and says how long it took',
    'a pattern': (n) => `${filler(3_000_000 * n, '(a+)+')}$`,
    'words without blanks': (n) => filler(500_000 * n, 'fooBar9_'),
    accents: (n) => filler(1_000_000 * n, 'é́Ü'),
    'combining characters': (n) => filler(2_000_000 * n, '\u0301'),
    emoji: (n) => filler(400_000 * n, '👩‍👩‍👧 '),
    quotes: (n) => filler(1_000_000 * n, '"*'),
    'code points of other scripts': (n) => filler(1_000_000 * n, '漢字'),
  }
  for (const [what, of] of Object.entries(queries)) {
    await row(`find_tool, description: ${what}`, (n) => find({ tool_description: of(n) }))
    await row(`find_tool, keywords: ${what}`, (n) => find({ tool_description: 'copy', tool_keywords: of(n) }))
  }
  await row('call_tool of a long name', (n) =>
    status(
      session.request('tools/call', {
        name: 'call_tool',
        arguments: { tool_name: filler(7_000_000 * n, 'x'), parameters: {} },
      }),
    ),
  )
  await row('call_tool with dense parameters', (n) => {
    const args = `{"tool_name":"raw_tool_1","parameters":{"l":[${filler(240_000 * n, '[],')}[]]}}`
    return status(post(url, rpc('tools/call', `{"name":"call_tool","arguments":${args}}`), session.headers))
  })
})

t.test('event loop: no request that policies look at keeps the server from others', async (t) => {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const many = Array.from(
    { length: 5_000 },
    (_, i) => `{"name":"tool_${i}","description":"${'d'.repeat(200)}","inputSchema":{"type":"object"}}`,
  )
  const backend = await backendOf(t, many)
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action, resource) when { context has arg_a && context.arg_a == "bad" };',
    'forbid(principal, action, resource) when { principal has claim_team && principal.claim_team == "bad" };',
    'forbid(principal in ServiceGroup::"bad", action, resource);',
  ]
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies } },
    audit: { includeRequestData: true, includeResponseData: true },
  })
  const claims: Readonly<Record<string, (n: number) => Record<string, unknown>>> = {
    none: () => ({}),
    'many groups': (n) => ({ groups: Array.from({ length: 300 * n }, (_, i) => `group-${i}`) }),
    'many claims': (n) => Object.fromEntries(Array.from({ length: 300 * n }, (_, i) => [`c${i}`, i])),
    'a long claim': (n) => ({ team: filler(8_000 * n, 'x') }),
    'a deep claim': (n) => ({
      team: JSON.parse(`${filler(200 * n, '[')}1${filler(200 * n, ']')}`) as unknown,
    }),
  }
  const args: Readonly<Record<string, (n: number) => string>> = {
    'one long text': (n) => `{"a":"${filler(7_000_000 * n, 'x')}"}`,
    'many arguments': (n) =>
      `{${Array.from({ length: 9_900 * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}`,
    'too many arguments': (n) =>
      `{${Array.from({ length: 120_000 * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}`,
    'many texts': (n) =>
      `{${Array.from({ length: 9_900 * n }, (_, i) => `"k${i}":"${'v'.repeat(100)}"`).join(',')},"z":1}`,
    'a dense list': (n) => `{"a":[${filler(240_000 * n, '[],')}[]]}`,
    'a huge number': (n) => `{"a":${filler(5_000_000 * n, '7')}}`,
    'escapes in texts': (n) => `{"a":"${filler(1_000_000 * n, '\\u0000')}"}`,
  }
  for (const [what, of] of Object.entries(claims)) {
    const headers = async (n: number) => ({ authorization: `Bearer ${await issuer.token('ada', of(n))}` })
    await row(`tools/list of 5000 tools, claims: ${what}`, async (n) => {
      const sent = await stateless(url, 'tools/list', {}, { headers: await headers(n) })
      return sent.status
    })
    await row(`call, claims: ${what}`, async (n) => {
      const call = { name: 'small', arguments: { a: 1 } }
      return (await stateless(url, 'tools/call', call, { headers: await headers(n) })).status
    })
  }
  const plain = { authorization: `Bearer ${await issuer.token('ada')}` }
  for (const [what, of] of Object.entries(args))
    await row(`call, arguments: ${what}`, (n) => {
      const { headers, body } = statelessRequest('tools/call', { name: 'small' }, { headers: plain })
      return status(post(url, body.replace('"name":"small"', `"name":"small","arguments":${of(n)}`), headers))
    })
})
