/**
 * Benchmark peer: the floor for a Node program between a client and a server. It forwards whole bodies with `node:http`
 * and an undici pool, and does nothing else. Argument: JSON of the URL of the target. Prints its port as a JSON array.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const target = new URL(JSON.parse(process.argv[2] ?? '""') as string)
const pool = new Pool(target.origin, { connections: 64, pipelining: 1 })
const passed = ['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name']

function forward(req: IncomingMessage, res: ServerResponse, body: Buffer): void {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  for (const name of passed) {
    const value = req.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  const chunks: Buffer[] = []
  let status = 0
  let fields: Readonly<Record<string, string | string[] | undefined>> = {}
  pool.dispatch(
    { path: target.pathname, method: 'POST', headers, body },
    {
      onRequestStart() {},
      onResponseStart(_controller, code, received) {
        status = code
        fields = received
      },
      onResponseData(_controller, chunk) {
        chunks.push(chunk)
      },
      onResponseEnd() {
        const whole = Buffer.concat(chunks)
        const session = fields['mcp-session-id']
        res.writeHead(status, {
          'content-type': String(fields['content-type']),
          'content-length': whole.length,
          ...(typeof session === 'string' ? { 'mcp-session-id': session } : {}),
        })
        res.end(whole)
      },
      onResponseError(_controller, error) {
        res.writeHead(502).end(error.message)
      },
    },
  )
}

const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => forward(req, res, Buffer.concat(chunks)))
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  process.stdout.write(`[${(server.address() as AddressInfo).port}]\n`)
})
