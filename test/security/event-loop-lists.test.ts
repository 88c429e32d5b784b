/**
 * Large and hostile lists of backends of both eras: no turn of the server's event loop may be long while they are read,
 * checked, merged and sent; see watched.ts.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 1_800_000 : 600_000)

const MB = 1_000_000
const many = (count: number, item: (i: number) => string) =>
  Array.from({ length: Math.max(1, Math.floor(count)) }, (_, i) => item(i)).join(',')
const tool = (name: string, more = '', schema = '{"type":"object"}') =>
  `{"name":"${name}","inputSchema":${schema}${more}}`
const nested = (depth: number): string =>
  '{"type":"object","properties":{"a":'.repeat(depth) + '{}' + '}}'.repeat(depth)

/** The list's content in addition to the tool that identifies it: some 4 MB, or the most that is read, for n = 1. */
const LISTS: Readonly<Record<string, (n: number) => string>> = {
  many_tools: (n) => many(5_000 * n, (i) => tool(`t${i}`)),
  too_many_tools: (n) => many(20_000 * n, (i) => tool(`t${i}`)),
  one_name: (n) => many(20_000 * n, () => tool('same')),
  bad_items: (n) => many(50_000 * n, (i) => (i % 2 === 0 ? '{}' : '7')),
  long_description: (n) => tool('long', `,"description":"${'x'.repeat(4 * MB * n)}"`),
  escapes: (n) => tool('escapes', `,"description":"${'\\u0041'.repeat((4 * MB * n) / 6)}"`),
  many_properties: (n) =>
    tool('wide', '', `{"type":"object","properties":{${many(100_000 * n, (i) => `"p${i}":{}`)}}}`),
  long_enum: (n) =>
    tool('enum', '', `{"type":"object","properties":{"e":{"enum":[${many(400_000 * n, String)}]}}}`),
  deep_schema: (n) => tool('deep', '', nested(120 * n)),
  references: (n) =>
    tool(
      'refs',
      '',
      `{"type":"object","$defs":{${many(20_000 * n, (i) => `"d${i}":{"$ref":"#/$defs/d${i + 1}"}`)}},"$ref":"#/$defs/d0"}`,
    ),
  outputs: (n) => many(2_000 * n, (i) => tool(`o${i}`, `,"outputSchema":${nested(20)}`)),
  metadata: (n) => tool('meta', `,"_meta":{"l":[${'[],'.repeat((4 * MB * n) / 3)}[]]}`),
  annotations: (n) => tool('hints', `,"annotations":{${many(100_000 * n, (i) => `"h${i}":1`)}}`),
}

/** Lists that the server rejects as a whole. The previous list stays in use. */
const refused: ReadonlySet<string> = new Set(['too_many_tools', 'one_name', 'bad_items'])

for (const era of ['session', 'stateless'] as const) {
  t.test(`event loop: no list of a backend of the ${era} era blocks other clients`, async (t) => {
    const backend = await startLister(t, era)
    const { url, row } = await startWatched(t, {
      backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
      aggregation: bareNames('raw'),
    })
    const session = await openSession(url)
    const list = () => post(url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', session.headers)
    for (const [name, items] of Object.entries(LISTS)) {
      await row(
        name,
        async (n) => {
          await list()
          const read = backend.change(items(n))
          await read
          // A list is in use once its identifying tool is listed. A rejected list never is.
          let isUsed = false
          // Changes in quick succession take effect after growing pauses.
          const tries = refused.has(name) ? 20 : 1_000
          for (let i = 0; i < tries && !isUsed; i++) {
            const response = await list()
            const stateless = statelessRequest('tools/list', {})
            await post(url, stateless.body, stateless.headers)
            isUsed = response.text.includes(backend.mark())
            if (!isUsed) await delay(25)
          }
          return isUsed === refused.has(name) ? 0 : 200
        },
        200,
      )
    }
  })
}

interface Lister {
  readonly url: string
  /** The name of the first tool of the current list. */
  mark(): string
  /** Announces a changed list. Resolves when the new one was read. */
  change(items: string): Promise<unknown>
}

async function startLister(t: Test, era: 'session' | 'stateless'): Promise<Lister> {
  const stateless = era === 'stateless'
  const listed = stateless ? '"resultType":"complete","ttlMs":600000,"cacheScope":"public",' : ''
  const capabilities =
    '"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}'
  const streams = new Set<ServerResponse>()
  let lists = 0
  let items = ''
  let read = Promise.withResolvers<unknown>()
  const open = (res: ServerResponse): ServerResponse => {
    streams.add(res.writeHead(200, { 'content-type': 'text/event-stream' }))
    res.once('close', () => streams.delete(res))
    res.flushHeaders()
    return res
  }
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (req.method === 'GET') return void open(res)
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    if (req.method !== 'POST') return void res.writeHead(200).end()
    const { id, method } = JSON.parse(Buffer.concat(chunks).toString()) as { id?: unknown; method: string }
    if (id === undefined) return void res.writeHead(202).end()
    const reply = (result: string, headers: Record<string, string> = {}) => {
      res.writeHead(200, { 'content-type': 'application/json', ...headers })
      res.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
    }
    if (method === 'subscriptions/listen' && stateless) {
      const params = `{"subscriptionId":${JSON.stringify(id)},"notifications":{"toolsListChanged":true}}`
      open(res).write(
        `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":${params}}\n\n`,
      )
    } else if (method === 'server/discover' && stateless)
      reply(`{${listed}"supportedVersions":["2026-07-28"],${capabilities}}`)
    else if (method === 'initialize' && !stateless)
      reply(`{"protocolVersion":"2025-11-25",${capabilities}}`, { 'mcp-session-id': 'one' })
    else if (method === 'tools/list') {
      res.once('close', () => read.resolve(undefined))
      reply(`{${listed}"tools":[${tool(`mark_${lists}`)}${items === '' ? '' : `,${items}`}]}`)
    } else if (method === 'ping') reply('{}')
    else {
      res.writeHead(stateless ? 404 : 400, { 'content-type': 'application/json' })
      res.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"unknown"}}`)
    }
  }
  const server = createServer((req, res) => void handle(req, res))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    mark: () => `"mark_${lists}"`,
    change(next) {
      lists += 1
      items = next
      read = Promise.withResolvers()
      for (const stream of streams)
        stream.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
      return Promise.race([read.promise, delay(3_000)])
    },
  }
}
