/** Benchmark peer: answers every request with a tools/call result of about 480 bytes. Prints its port. */
import { createServer } from 'node:http'

const body = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { content: [{ type: 'text', text: 'x'.repeat(400) }], isError: false },
  }),
)

const server = createServer((req, res) => {
  if (req.url === '/events') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const timer = setInterval(
      () => res.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'),
      20,
    )
    res.on('close', () => clearInterval(timer))
    return
  }
  req.resume()
  req.on('end', () => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    res.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
