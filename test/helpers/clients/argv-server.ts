/**
 * An MCP server whose tool `start` returns the server's command-line arguments and one environment variable.
 *
 * `node test/helpers/clients/argv-server.ts [ARGUMENT…]` serves standard input and output. With `--listen PORT`, it
 * serves streamable HTTP at /mcp.
 */
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const args = process.argv.slice(2)
const port = args[0] === '--listen' ? Number(args[1]) : undefined

function makeServer(headers: unknown = {}): McpServer {
  const server = new McpServer({ name: 'argv', version: '1' })
  server.registerTool('start', { description: 'how this server was started' }, () => ({
    content: [
      {
        type: 'text',
        text: JSON.stringify({ args, token: process.env['TOKEN'], port: process.env['PORT'], headers }),
      },
    ],
  }))
  return server
}

if (port === undefined) {
  await makeServer().connect(new StdioServerTransport())
} else {
  createServer((request, response) => {
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    const { 'x-key': key } = request.headers
    makeServer({ key })
      .connect(transport as Parameters<McpServer['connect']>[0])
      .then(() => transport.handleRequest(request, response))
      .catch(() => response.destroy())
  }).listen(port, '127.0.0.1', () => process.stderr.write('listening\n'))
}
