/**
 * A server on standard streams that rejects a second `initialize`, and responds late (`slow`), at length (`long`), or
 * with other lines around the response (`chatter`).
 */
import { createInterface } from 'node:readline'

let initialized = 0

function say(value: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...value })}\n`)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const {
    id,
    method,
    params = {},
  } = JSON.parse(line) as {
    id?: string
    method: string
    params?: { ms?: number; bytes?: number }
  }
  if (method === 'initialize' && initialized++ > 0)
    say({ id, error: { code: -32600, message: 'initialized already' } })
  else if (method === 'initialize')
    say({
      id,
      result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'once', version: '1' } },
    })
  else if (method === 'slow') setTimeout(() => say({ id, result: { initialized } }), params.ms)
  else if (method === 'long')
    process.stdout.write(
      `{"result":{"text":"${'y'.repeat(params.bytes ?? 0)}"},"jsonrpc":"2.0","id":${JSON.stringify(id)}}\n`,
    )
  else if (method === 'chatter') {
    process.stdout.write('this is no message\n')
    console.error('on standard error')
    say({ id, result: {} })
  } else if (id !== undefined) say({ id, result: {} })
})
