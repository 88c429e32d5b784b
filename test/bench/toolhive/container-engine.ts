/**
 * Answers the requests of `thv` to a container engine at its start, and runs no containers, because `thv proxy` does
 * not start without an engine. Argument: path of the socket.
 */
import { createServer } from 'node:http'

const [socket] = process.argv.slice(2)
const answers: Readonly<Record<string, string>> = {
  _ping: 'OK',
  version: '{"ApiVersion":"1.47","Version":"27.0"}',
}

createServer((request, response) => {
  const word = new URL(request.url ?? '/', 'http://engine').pathname.split('/').at(-1) ?? ''
  response.writeHead(200, { 'content-type': 'application/json', 'api-version': '1.47' })
  response.end(answers[word] ?? '[]')
}).listen(socket, () => process.stdout.write('ready\n'))
