/**
 * Large and hostile results of a stdio server over HTTP: no turn of the bridge's event loop may be long, whatever the
 * eras of server and clients; see watched.ts.
 */
import { join } from 'node:path'
import t from 'tap'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { startWatchedProgram } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 1_800_000 : 400_000)

const megabyte = 1_000_000
const results = ['long_text', 'escapes', 'dense', 'a_list', 'blanks', 'reserved_names', 'many_lines']
/** Results that reach the client nearly empty. A session client gets only the text of a list. */
const small: ReadonlySet<string> = new Set(['many_lines', 'a_list'])
const program = join(process.cwd(), 'test/helpers/mcp/large-stdio-program.ts')

for (const era of ['session', 'stateless'])
  t.test(`event loop: no result of a stdio server of the ${era} era blocks other clients`, async (t) => {
    const config = { name: 'large', stdio: { command: process.execPath, args: [program, era] } }
    const file = join(t.testdir({ 'proxy.json': JSON.stringify(config) }), 'proxy.json')
    const { url, row } = await startWatchedProgram(
      t,
      ['proxy', '--config', file, '--host', '127.0.0.1', '--port', '0', 'large'],
      (output) => {
        const port = /started on port (\d+)/.exec(output)?.[1]
        return port === undefined ? undefined : `http://127.0.0.1:${port}/mcp`
      },
    )
    const session = await openSession(url)
    /** Returns the status, or 0 when the response is not a result. */
    const send = async (name: string, headers: Record<string, string>, body: string) => {
      const { status, text } = await post(url, body, headers)
      return (text.length > megabyte || small.has(name)) && !text.includes('"error":') ? status : 0
    }
    for (const name of results) {
      const params = (n: number) => ({ name, arguments: { n } })
      await row(
        `${name}, for a session client`,
        (n) => {
          const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(n) })
          return send(name, session.headers, body)
        },
        200,
      )
      await row(
        `${name}, for a stateless client`,
        (n) => {
          const { headers, body } = statelessRequest('tools/call', params(n))
          return send(name, headers, body)
        },
        200,
      )
    }
  })
