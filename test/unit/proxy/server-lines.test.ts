/** Lines of a stdio server: JSON log lines are text, and unreadable responses become errors with a logged cause. */
import t from 'tap'
import type { Message } from '../../../runtime/mcp/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { messagesOf } from '../../../runtime/proxy/stdio-server/messages.ts'

function setup() {
  const messages: Message[] = []
  const texts: string[] = []
  const warnings: { message: string; fields: unknown }[] = []
  const log = {
    ...silentLog,
    warn: (message: string, fields?: unknown) => void warnings.push({ message, fields }),
  }
  const onLine = messagesOf(log, {
    onMessage: (message) => messages.push(message),
    onText: (line) => texts.push(line),
  })
  return { messages, texts, warnings, read: async (line: string) => onLine(Buffer.from(line)) }
}

t.test('a JSON log line is not treated as a response', async (t) => {
  const { read, messages, texts, warnings } = setup()
  const lines = [
    '{"level":"info","id":1,"error":"timeout talking to db"}',
    '{"time":1,"id":3,"result":"ok"}',
    '{"id":2,"ts":5,"result":[1,2]}',
  ]
  for (const line of lines) await read(line)
  t.strictSame(messages, [])
  t.strictSame(texts, lines)
  t.match(warnings, [{ message: /not a JSON-RPC message/ }])
  t.equal(warnings.length, 1)
})

t.test('an unreadable response becomes an error, and a warning contains the cause', async (t) => {
  const { read, messages, texts, warnings } = setup()
  const large = `"text":"${'x'.repeat(300_000)}"`
  await read('{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{}}')
  await read(`{"jsonrpc":"2.0","id":2,"result":{${large}`)
  t.match(messages, [
    { kind: 'error', id: '1' },
    { kind: 'error', id: '2' },
  ])
  t.strictSame(texts, [])
  t.equal(warnings.length, 1, 'at most one warning per minute')
  t.match(warnings, [
    { message: /cannot be read/, fields: { err: { message: 'Invalid Request: a member occurs twice' } } },
  ])
})
