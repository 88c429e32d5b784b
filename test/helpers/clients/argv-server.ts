/**
 * An MCP server whose tool `start` returns the server's command-line arguments and one environment variable.
 *
 * `node test/helpers/clients/argv-server.ts [ARGUMENT…]` serves standard input and output. Tests start this program
 * hundreds of times, so this mode works without the SDK, which takes five times as long to load as Node itself. With
 * `--listen PORT`, the program serves streamable HTTP at /mcp with the SDK.
 */
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

const args = process.argv.slice(2)
const port = args[0] === '--listen' ? Number(args[1]) : undefined

const info = { name: 'argv', version: '1' }
const description = 'how this server was started'

function startText(headers: unknown = {}): string {
  return JSON.stringify({ args, token: process.env['TOKEN'], port: process.env['PORT'], headers })
}

interface Request {
  /** Undefined for a notification. */
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly protocolVersion?: string }
}

const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

/** Returns undefined for an unknown method or tool. */
function resultOf({ method, params = {} }: Request): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: versions.find((version) => version === params.protocolVersion) ?? versions[0],
        capabilities: { tools: { listChanged: true } },
        serverInfo: info,
      }
    case 'ping':
      return {}
    case 'tools/list':
      return { tools: [{ name: 'start', description, inputSchema: { type: 'object', properties: {} } }] }
    case 'tools/call':
      return params.name === 'start' ? { content: [{ type: 'text', text: startText() }] } : undefined
    default:
      return undefined
  }
}

function serveStdio(): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const request = JSON.parse(line) as Request
    if (request.id === undefined) return
    const result = resultOf(request)
    const outcome = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, ...outcome })}\n`)
  })
}

async function serveHttp(port: number): Promise<void> {
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js')
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js')
  createServer((request, response) => {
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    const { 'x-key': key } = request.headers
    const server = new McpServer(info)
    server.registerTool('start', { description }, () => ({
      content: [{ type: 'text', text: startText({ key }) }],
    }))
    server
      .connect(transport as Parameters<typeof server.connect>[0])
      .then(() => transport.handleRequest(request, response))
      .catch(() => response.destroy())
  }).listen(port, '127.0.0.1', () => process.stderr.write('listening\n'))
}

if (port === undefined) serveStdio()
else await serveHttp(port)
