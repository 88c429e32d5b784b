/**
 * Large and hostile results of backends, up to the 64 MiB limit of a response: no turn of the server's event loop may
 * be long; see watched.ts. Each result goes once to a client of either era, once as JSON and once as events, or in all
 * four combinations with `make fuzz`.
 */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, postUnread, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched, takes } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 1_800_000 : 400_000)

const MB = 1_000_000
const filler = (bytes: number, text: string) => text.repeat(Math.max(1, Math.floor(bytes / text.length)))
const text = (value: string) => `{"content":[{"type":"text","text":"${value}"}]}`
const reserved = '{"type":"text","text":"a","_meta":{"io.modelcontextprotocol/x":1,"y":1}},'

/** Results by tool name; 30 MB for n = 1. */
const RESULTS: Readonly<Record<string, (n: number) => string>> = {
  long_text: (n) => text(filler(30 * MB * n, 'x')),
  escapes: (n) => text(filler(30 * MB * n, '\\u0041')),
  line_ends: (n) => text(filler(30 * MB * n, '\\n')),
  code_points: (n) => text(filler(15 * MB * n, '😀')),
  dense: (n) => `{"content":[],"structuredContent":{"l":[${filler(30 * MB * n, '[],')}[]]}}`,
  numbers: (n) => `{"content":[],"structuredContent":{"l":[${filler(30 * MB * n, '1.5,')}1]}}`,
  short_texts: (n) => `{"content":[],"structuredContent":{"l":[${filler(30 * MB * n, '"",')}1]}}`,
  a_list: (n) => `{"content":[],"structuredContent":[${filler(30 * MB * n, '1.5,')}1]}`,
  a_number: (n) => `{"content":[],"structuredContent":{"l":${filler(30 * MB * n, '7')}}}`,
  a_name: (n) => `{"content":[],"${filler(30 * MB * n, 'x')}":1}`,
  an_inner_name: (n) => `{"content":[],"structuredContent":{"${filler(30 * MB * n, 'x')}":1}}`,
  blanks: (n) => `{"content":[],${filler(30 * MB * n, ' ')}"structuredContent":{}}`,
  items: (n) =>
    `{"content":[${filler(30 * MB * n, '{"type":"text","text":"a"},')}{"type":"text","text":""}]}`,
  reserved_names: (n) => `{"content":[${filler(6 * MB * n, reserved)}{"type":"text","text":""}]}`,
  many_members: (n) =>
    `{"content":[],"structuredContent":{${Array.from({ length: 2 * MB * n }, (_, i) => `"k${i}":${i}`).join(',')},"z":1}}`,
  meta: (n) => `{"content":[],"_meta":{"l":[${filler(30 * MB * n, '[],')}[]]}}`,
  text_not_closed: (n) => `{"content":["${filler(30 * MB * n, 'x')}`,
  not_closed: (n) => `{"content":[${filler(30 * MB * n, '[],')}`,
}

/** Results that do not reach the client, which gets an error instead. */
const refused: ReadonlySet<string> = new Set([
  'a_number',
  'a_name',
  'an_inner_name',
  'meta',
  'not_closed',
  'text_not_closed',
])
/** A client with a session would get the list as text, which is too large. */
const refusedBySessions: ReadonlySet<string> = new Set([...refused, 'a_list'])

t.test('event loop: no large result of a backend blocks other clients', async (t) => {
  const backend = await startRawBackend({
    tools: () => Object.keys(RESULTS).map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
    responses: {
      'tools/call': ({ params, id, res }) => {
        const { n, how } = params['arguments'] as { n: number; how: string }
        const result = (RESULTS[String(params['name'])] ?? (() => '{}'))(n)
        if (how === 'json') return result
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${result}}\n\n`)
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
  })
  const session = await openSession(url)
  /**
   * Returns the status, or 0 when a forbidden result arrives or an error replaces an expected result. A rejected result
   * may have been sent in part, and breaks off then.
   */
  const send = async (isRefused: boolean, headers: Record<string, string>, body: string) => {
    const answer = await postUnread(url, body, headers).catch(() => undefined)
    if (!answer) return isRefused ? 200 : 0
    const { status, text } = answer
    return (text.length < MB && /"error":|"isError":true/.test(text)) === isRefused ? status : 0
  }
  const hows = ['json', 'events']
  for (const [input, name] of Object.keys(RESULTS).entries())
    for (const [at, how] of hows.entries()) {
      if (takes(input, at, 2))
        await row(
          `${name} as ${how}`,
          (n) => {
            const params = JSON.stringify({ name, arguments: { n, how } })
            const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
            return send(refusedBySessions.has(name), session.headers, body)
          },
          200,
        )
      if (takes(input, at + 1, 2))
        await row(
          `${name} as ${how}, for a stateless client`,
          (n) => {
            const { headers, body } = statelessRequest('tools/call', { name, arguments: { n, how } })
            return send(refused.has(name), headers, body)
          },
          200,
        )
    }
})
