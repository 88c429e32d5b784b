/** Large and hostile results and arguments that guardrails check: no turn of the server's event loop may be long. */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { postUnread, statelessRequest } from '../helpers/mcp/wire.ts'
import { until } from '../helpers/redis.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 1_800_000 : 400_000)

const MB = 1_000_000
const filler = (bytes: number, text: string) => text.repeat(Math.max(1, Math.floor(bytes / text.length)))
const text = (value: string) => `{"content":[{"type":"text","text":"${value}"}]}`

/** Results by tool name. They have some MB for n = 1. */
const RESULTS: Readonly<Record<string, (n: number) => string>> = {
  long_text: (n) => text(filler(10 * MB * n, 'lorem ipsum ')),
  // Small inputs that cause much work.
  much_for_little: (n) => text(filler(Math.min(0.25 * MB, 0.2 * MB * n), 'x')),
  one_letter: (n) => text(filler(5 * MB * n, 'a')),
  escapes: (n) => text(filler(5 * MB * n, '\\u0041')),
  line_ends: (n) => text(filler(5 * MB * n, '\\n')),
  code_points: (n) => text(filler(5 * MB * n, '😀')),
  matches: (n) => text(filler(5 * MB * n, 'a@b.co ')),
  escaped_matches: (n) => text(filler(5 * MB * n, '\\u0061@b.co 😀')),
  nearly_mail: (n) => text(filler(5 * MB * n, 'a@a@')),
  dots_and_labels: (n) => text(filler(5 * MB * n, 'a@b.c.d.e.f.1 ')),
  nearly_tokens: (n) => text(filler(5 * MB * n, '.eyJaaaaaaaaaaaaaaaa')),
  keys_begin: (n) => text(filler(5 * MB * n, '-----BEGIN PRIVATE KEY-----')),
  dashes: (n) => text(filler(5 * MB * n, '-')),
  digits: (n) => text(filler(5 * MB * n, '4111 1111 1111 1112 ')),
  accounts: (n) => text(filler(5 * MB * n, 'DE89 3704 0044 0532 0130 01 ')),
  prefixes: (n) => text(filler(5 * MB * n, 'ghp_ sk-a AKIA xoxb- ')),
  short_texts: (n) => `{"content":[],"structuredContent":{"l":[${filler(5 * MB * n, '"abcdefg",')}1]}}`,
  numbers: (n) => `{"content":[],"structuredContent":{"l":[${filler(5 * MB * n, '4111111111111112,')}1]}}`,
  names: (n) =>
    `{"content":[],"structuredContent":{${Array.from({ length: 5_000 }, (_, i) => `"${filler(1_000 * n, 'k')}${i}":${i}`).join(',')}}}`,
  items: (n) =>
    `{"content":[${filler(3 * MB * n, '{"type":"text","text":"a@b.co"},')}{"type":"text","text":""}]}`,
  escaped_again: (n) => text(filler(5 * MB * n, '\\\\nghp_%20a')),
  brackets: (n) => `{"content":[],"structuredContent":{"l":[${filler(5 * MB * n, '[],')}[]]}}`,
}

const redact = [
  {
    name: 'named',
    patterns: ['apiKey', 'privateKey', 'jwt', 'email', 'iban', 'paymentCard'],
    direction: 'both',
  },
  // Each would keep a backtracking engine busy forever.
  {
    name: 'own',
    expressions: ['(x+x+)+y', '(a|aa)+$', '[a-z]{1,40}[0-9]', '\\pL+EMP'],
    direction: 'both',
    action: 'observe',
  },
  { name: 'except', patterns: ['email'], except: [{ pointers: ['/structuredContent/l/*/mail'] }] },
]

const hostile = [
  'plain text ',
  'a\\u200b',
  '\u200b',
  '\\u001b[31mx',
  '\\u001b]0;',
  '<tool-output',
  '<',
  '😀\u200d',
  '\u{e0041}',
]

t.test('event loop: no guardrail check blocks other clients', async (t) => {
  const backend = await startRawBackend({
    tools: () =>
      [...Object.keys(RESULTS), 'notes', 'echo'].map(
        (name) => `{"name":"${name}","inputSchema":{"type":"object"}}`,
      ),
    responses: {
      'tools/call': ({ id, params, res }) => {
        const name = String(params['name'])
        const { n } = params['arguments'] as { n: number }
        if (name !== 'notes') return RESULTS[name]?.(n) ?? text('done')
        const { progressToken } = params['_meta'] as { progressToken: unknown }
        const progress = { progressToken, progress: 1, message: 'a@b.co 4111 1111 1111 1112 xxxxxxxx' }
        const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        // Sent together, so that they arrive in few turns.
        res.end(
          `${`data: ${note}\n\n`.repeat(20_000 * n)}data: {"jsonrpc":"2.0","id":${id},"result":${text('done')}}\n\n`,
        )
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    guardrails: { redact },
  })
  const send = async (params: Record<string, unknown>) => {
    const { headers, body } = statelessRequest('tools/call', params, { meta: { progressToken: 'p' } })
    return (await postUnread(url, body, headers)).status
  }
  for (const name of Object.keys(RESULTS)) await row(name, (n) => send({ name, arguments: { n } }), 200)
  await row('notes', (n) => send({ name: 'notes', arguments: { n } }), 200)
  for (const unit of ['a@b.co ', '4111 1111 1111 1112 ', 'xxxxxxxx', '\n'])
    await row(
      `arguments of ${JSON.stringify(unit)}`,
      (n) => send({ name: 'echo', arguments: { text: filler(3 * MB * n, unit) } }),
      200,
    )
})

t.test('event loop: no marked result blocks other clients', async (t) => {
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ params }) => {
        const { n, unit } = params['arguments'] as { n: number; unit: string }
        return text(filler(n, unit))
      },
    },
  })
  t.teardown(() => backend.close())
  for (const hiddenCharacters of ['mark', 'strip']) {
    const { url, row } = await startWatched(t, {
      backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
      aggregation: bareNames('raw'),
      guardrails: { mark: [{ name: 'all', hiddenCharacters, delimiters: true }] },
    })
    const call = async (n: number, unit: string) => {
      const { headers, body } = statelessRequest('tools/call', { name: 'echo', arguments: { n, unit } })
      return (await postUnread(url, body, headers)).status
    }
    for (const unit of hiddenCharacters === 'mark' ? hostile : hostile.slice(0, 3))
      await row(`${hiddenCharacters} ${JSON.stringify(unit)}`, (n) => call(4 * MB * n, unit), 200)
    // The largest that a backend may send.
    await row(`${hiddenCharacters} 64 MB`, () => call(64 * MB, 'long text, '), 200)
  }
})

t.test('event loop: no marked list blocks other clients', async (t) => {
  let tools: string[] = []
  const backend = await startRawBackend({
    capabilities: '{"tools":{"listChanged":true}}',
    tools: () => tools,
  })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    guardrails: { mark: [{ name: 'all', hiddenCharacters: 'mark' }] },
  })
  const list = async () => {
    const { headers, body } = statelessRequest('tools/list', {})
    return postUnread(url, body, headers)
  }
  await list()
  await until(() => backend.streams.size > 0)
  let serial = 0
  const offer = async (count: number, description: string): Promise<number> => {
    const name = `list${++serial}`
    tools = Array.from(
      { length: count },
      (_, i) => `{"name":"${name}_${i}","description":"${description}","inputSchema":{"type":"object"}}`,
    )
    backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
    let answer = await list()
    while (!answer.text.includes(name)) answer = await list()
    return answer.status
  }
  for (const unit of ['plain ', 'a\\u200b', '\\u001b[31mx'])
    await row(`many small with ${unit}`, (n) => offer(Math.min(9_000, 2_000 * n), filler(200, unit)), 200)
  await row('one large', (n) => offer(1, filler(500_000 * n, 'a\\u200b')), 200)
})
