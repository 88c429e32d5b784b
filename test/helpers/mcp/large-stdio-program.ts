/**
 * A hand-written stdio server with large, hostile results. Its argument selects the era, `session` or `stateless`. The
 * name of the tool selects the content of the result, and its argument `n` the size.
 */
import { createInterface } from 'node:readline'

const megabyte = 1_000_000
const filler = (bytes: number, text: string) => text.repeat(Math.max(1, Math.floor(bytes / text.length)))
const text = (value: string) => `"content":[{"type":"text","text":"${value}"}]`

/** Members of results, by name of the tool; 20 megabytes for n = 1. */
const results: Readonly<Record<string, (n: number) => string>> = {
  long_text: (n) => text(filler(20 * megabyte * n, 'x')),
  escapes: (n) => text(filler(20 * megabyte * n, '\\u0041')),
  dense: (n) => `"content":[],"structuredContent":{"l":[${filler(20 * megabyte * n, '[],')}[]]}`,
  a_list: (n) => `${text('a')},"structuredContent":[${filler(20 * megabyte * n, '1.5,')}1]`,
  blanks: (n) => `"content":[${filler(20 * megabyte * n, '\r')}]`,
  reserved_names: (n) =>
    `"content":[${filler(6 * megabyte * n, '{"type":"text","text":"a","_meta":{"io.modelcontextprotocol/x":1}},')}1]`,
  many_lines: () => text('a'),
}

const era = process.argv[2] ?? 'session'
const own = era === 'stateless' ? '"resultType":"complete",' : ''
const tools = Object.keys(results).map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`)
const members: Readonly<Record<string, string>> = {
  'tools/list': `"tools":[${tools.join(',')}]`,
  ...(era === 'session'
    ? {
        initialize:
          '"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}',
      }
    : { 'server/discover': '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}' }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as {
    id?: unknown
    method: string
    params?: { name?: string; arguments?: { n?: number } }
  }
  if (id === undefined) continue
  const name = method === 'tools/call' ? (params?.name ?? '') : ''
  const n = params?.arguments?.n ?? 1
  const found = members[method] ?? results[name]?.(n)
  if (name === 'many_lines')
    process.stdout.write(filler(2 * megabyte * n, '{"jsonrpc":"2.0","method":"notifications/message"}\n'))
  const rest =
    found === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":{${own}${found}}`
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${rest}}\n`)
}
