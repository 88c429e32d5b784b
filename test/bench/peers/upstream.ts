/**
 * Benchmark peer: responds to every request with a tools/call result of about 480 bytes. Prints its port.
 *
 * `GET /events` is an event stream with one event at once and then every 20 ms, each with its send time; `GET /quiet`
 * sends one event and stays open; `POST …?session` opens a session.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'

const body = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { content: [{ type: 'text', text: 'x'.repeat(400) }], isError: false },
  }),
)
const plain = { 'Content-Type': 'application/json', 'Content-Length': body.length }

function sendEvent(res: ServerResponse): void {
  const params = { level: 'info', data: Number(process.hrtime.bigint()) / 1e6 }
  res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n\n`)
}

const server = createServer((req, res) => {
  if (req.method === 'GET' && (req.url === '/events' || req.url === '/quiet')) {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    sendEvent(res)
    if (req.url === '/quiet') return
    const timer = setInterval(sendEvent, 20, res)
    res.on('close', () => clearInterval(timer))
    return
  }
  req.resume()
  req.on('end', () => {
    const opens = req.url?.endsWith('?session') === true
    res.writeHead(200, opens ? { ...plain, 'Mcp-Session-Id': randomUUID() } : plain)
    res.end(body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
