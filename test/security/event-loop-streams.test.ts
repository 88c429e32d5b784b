/**
 * Hostile event streams of backends of either era, and large results for clients with an event stream: no turn of the
 * server's event loop may be long; see watched.ts. Clients of the two eras take turns; each stream goes to both with
 * `make fuzz`.
 */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched, takes } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 1_800_000 : 400_000)

const megabyte = 1_000_000
const filler = (bytes: number, text: string) => text.repeat(Math.max(1, Math.floor(bytes / text.length)))
const text = (value: string) => `{"content":[{"type":"text","text":"${value}"}]}`
const progress = (token: unknown) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(token)},"progress":1}}`

/** Content before and in the event with the response, by tool name; 30 MB for n = 1. */
const streams: Readonly<
  Record<string, (n: number, response: (result: string) => string, token: unknown) => string>
> = {
  empty_lines: (n, response) =>
    `data: ${response(`{"content":[\n${filler(30 * megabyte * n, 'data:\n')}data: ]}`)}\n\n`,
  cr_lines: (n, response) =>
    `data: ${response(`{"content":[\r${filler(30 * megabyte * n, 'data:\r')}data: ]}`)}\n\n`,
  short_lines: (n, response) =>
    `data: ${response(`{"content":[],"structuredContent":{"l":[\n${filler(30 * megabyte * n, 'data: 1,\n')}data: 1]}}`)}\n\n`,
  one_line: (n, response) => `data: ${response(text(filler(60 * megabyte * n, 'x')))}\n\n`,
  comments: (n, response) => `${filler(30 * megabyte * n, ':\n')}data: ${response(text(''))}\n\n`,
  names: (n, response) =>
    `${filler(30 * megabyte * n, 'event: message\nid: y\n')}data: ${response(text(''))}\n\n`,
  unknown_field: (n, response) => `${filler(30 * megabyte * n, 'x')}\ndata: ${response(text(''))}\n\n`,
  line_ends: (n, response) => `${filler(30 * megabyte * n, '\n')}data: ${response(text(''))}\n\n`,
  empty_events: (n, response) => `${filler(30 * megabyte * n, 'data:\n\n')}data: ${response(text(''))}\n\n`,
  notifications: (n, response) =>
    `${filler(2 * megabyte * n, 'data:{"jsonrpc":"2.0","method":"x"}\n\n')}data: ${response(text(''))}\n\n`,
  progress: (n, response, token) =>
    `${filler(megabyte * n, `data:${progress(token)}\n\n`)}data: ${response(text(''))}\n\n`,
  large_after_progress: (n, response, token) =>
    `data: ${progress(token)}\n\ndata: ${response(text(filler(30 * megabyte * n, 'x')))}\n\n`,
  blanks_after_progress: (n, response, token) =>
    `data: ${progress(token)}\n\ndata: ${response(`{"content":[\n${filler(30 * megabyte * n, 'data:\n')}data: ]}`)}\n\n`,
}

t.test('event loop: no event stream of a backend blocks other clients', async (t) => {
  const tools = () => Object.keys(streams).map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`)
  const backend = await startRawBackend({
    tools,
    responses: {
      'tools/call': ({ params, id, res }) => {
        const { n } = params['arguments'] as { n: number }
        const { progressToken } = (params['_meta'] ?? {}) as { progressToken?: unknown }
        const response = (result: string) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(streams[String(params['name'])]?.(n, response, progressToken))
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    // A busy machine needs long for the largest streams.
    operational: { timeouts: { default: '3m' } },
  })
  const session = await openSession(url)
  const send = async (headers: Record<string, string>, body: string) => {
    const { status, response } = await post(url, body, headers)
    return response?.result && response.result['isError'] !== true ? status : 0
  }
  const many = Array.from({ length: 4 }, () => Object.keys(streams)).flat()
  await row(
    'all of them at once, several times',
    async (n) => {
      const calls = many.map(async (name, i) => {
        const params = { name, arguments: { n: n / 100 }, _meta: { progressToken: 'p' } }
        const body = JSON.stringify({ jsonrpc: '2.0', id: i, method: 'tools/call', params })
        return send(session.headers, body)
      })
      return Math.min(...(await Promise.all(calls)))
    },
    200,
  )
  for (const [input, name] of Object.keys(streams).entries()) {
    const params = (n: number) => ({ name, arguments: { n }, _meta: { progressToken: 'p' } })
    if (takes(input, 0, 2))
      await row(
        name,
        (n) =>
          send(
            session.headers,
            JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(n) }),
          ),
        200,
      )
    if (takes(input, 1, 2))
      await row(
        `${name}, for a stateless client`,
        (n) => {
          const { headers, body } = statelessRequest('tools/call', params(n), {
            meta: { progressToken: 'p' },
          })
          return send(headers, body)
        },
        200,
      )
  }
})
