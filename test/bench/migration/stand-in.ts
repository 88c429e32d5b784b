/**
 * Stands in for an MCP server whose image is unavailable. It serves the tools that the examples name, on standard
 * streams if they are open, otherwise over HTTP (`/mcp`, and `/sse` with `/messages`) on each port in STAND_IN_PORTS.
 */
import { fstatSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const tools = ['echo', 'add', 'longecho', 'sampleLLM', 'fetch']

function server(): McpServer {
  const made = new McpServer({ name: 'stand-in', version: '1' })
  for (const name of tools)
    made.registerTool(name, { description: `Stands in for ${name}` }, () => ({
      content: [{ type: 'text', text: name }],
    }))
  return made
}

const streams = new Map<string, SSEServerTransport>()

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand-in')
  if (pathname === '/sse') {
    const transport = new SSEServerTransport('/messages', response)
    streams.set(transport.sessionId, transport)
    response.once('close', () => streams.delete(transport.sessionId))
    await server().connect(transport)
  } else if (pathname === '/messages') {
    const transport = streams.get(searchParams.get('sessionId') ?? '')
    if (transport) await transport.handlePostMessage(request, response)
    else response.writeHead(404).end()
  } else if (pathname === '/mcp') {
    // Without sessions, each request has its own server.
    const transport = new StreamableHTTPServerTransport({})
    const one = server()
    response.once('close', () => void one.close())
    await one.connect(transport)
    await transport.handleRequest(request, response)
  } else response.writeHead(pathname === '/health' ? 200 : 404).end()
}

const stdin = fstatSync(0)
if (stdin.isFIFO() || stdin.isSocket()) await server().connect(new StdioServerTransport())
else
  for (const port of (process.env['STAND_IN_PORTS'] ?? '8080').split(','))
    createServer((request, response) => {
      answer(request, response).catch(() => response.destroy())
    }).listen(Number(port))
