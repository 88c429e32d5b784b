/**
 * Runs the example of docs/guides/tool-search.md: the real program, a real MCP server, and the exact texts of the page.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadVmcpConfig } from '../../../../runtime/config/index.ts'
import { freePort, startGatehouse } from '../../../helpers/gatehouse.ts'
import { connect } from '../../../helpers/mcp/clients.ts'

t.setTimeout(120_000)

const root = join(import.meta.dirname, '../../../..')
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const page = readFileSync(join(root, 'docs/guides/tool-search.md'), 'utf8')

/** Returns the n-th block of a language. */
function block(language: string, n: number): string {
  const found = [...page.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\n\`\`\``, 'g'))][n]?.[1]
  if (found === undefined) throw new Error(`the page has no block ${n} of ${language}`)
  return found
}

const json = (n: number) => JSON.parse(block('json', n)) as Record<string, unknown>

t.test('guide: the example on one machine works as written', async (t) => {
  const [backendPort, port] = [await freePort(), await freePort()]
  const backend = spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { ...process.env, PORT: String(backendPort) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => void backend.kill())
  await new Promise<void>((resolve, reject) => {
    backend.stderr.setEncoding('utf8').on('data', (text: string) => text.includes('listening') && resolve())
    once(backend, 'exit').then(() => reject(new Error('the server ended')), reject)
  })
  const file = join(t.testdir({}), 'vmcp.yaml')
  writeFileSync(file, block('yaml', 0).replace('127.0.0.1:3001', `127.0.0.1:${backendPort}`))
  const gatehouse = startGatehouse(['vmcp', 'serve', '--config', file, '--port', String(port)])
  t.teardown(() => gatehouse.interrupt())
  await gatehouse.waitFor(/listening/)
  const client = await connect('sdk2-session', `http://127.0.0.1:${port}/mcp`)
  t.teardown(() => client.close())
  t.same(
    (await client.listTools()).map(({ name }) => name),
    ['find_tool', 'call_tool'],
  )
  const found = (await client.call('find_tool', json(0)))['structuredContent'] as {
    tools: { name: string; inputSchema: unknown }[]
    token_metrics: Record<string, number>
  }
  const shown = json(1) as unknown as typeof found
  t.equal(found.tools[0]?.name, shown.tools[0]?.name)
  t.ok(found.tools[0]?.inputSchema)
  t.ok(found.tools.length <= loadVmcpConfig(file).config.optimizer!.maxToolsToReturn)
  t.same(Object.keys(found.token_metrics), Object.keys(shown.token_metrics))
  t.comment(JSON.stringify(found.token_metrics), found.tools.map(({ name }) => name).join(' '))
  t.match(await client.callText('call_tool', json(2)), '42')
})
