/** Stands in for an embedding service whose image is unavailable: its vectors count letters. Listens on `--port`. */
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

const { argv } = process
const port = Number(argv[argv.indexOf('--port') + 1])
const dimensions = 64

createServer((request, response) => {
  const send = (value: unknown) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  if (request.url === '/health') response.end()
  else if (request.url === '/info') send({ model_id: 'letters', max_client_batch_size: 8 })
  else
    void json(request).then((body) => {
      const { inputs } = body as { inputs: string | readonly string[] }
      send([inputs].flat().map(vectorOf))
    })
}).listen(port)

function vectorOf(text: string): number[] {
  const vector = Array.from({ length: dimensions }, () => 0)
  for (const letter of text) {
    const at = (letter.codePointAt(0) ?? 0) % dimensions
    vector[at] = (vector[at] ?? 0) + 1
  }
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}
