/**
 * Derives the outcome of an operation from the beginning and the end of a response: JSON bodies and event streams, in
 * pieces of any size.
 */
import t from 'tap'
import { ResponseWatch } from '../../../runtime/observe/exchange/answer-watch.ts'
import { isToolError, readResponse } from '../../../runtime/observe/exchange/rpc-answer.ts'
import { proves } from '../../helpers/proves.ts'

proves('3.error.audit.application', '3.config.audit.detectApplicationErrors')

const long = 'x'.repeat(5_000)

function responseOf(text: string) {
  return readResponse(text.slice(0, 512), text.slice(-512))
}

t.test('response: an error is recognized from its first bytes, with code and message', async (t) => {
  t.same(responseOf('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}'), {
    kind: 'error',
    code: -32602,
    message: 'no such tool',
  })
  const cut = responseOf(
    `{"jsonrpc":"2.0","id":1,"error":{"message":"Bearer abcdefgh ${long}","code":-32000}}`,
  )
  t.match(cut, { kind: 'error', message: /^Bearer \[redacted\] x+$/ })
  t.equal(Buffer.byteLength(cut?.message ?? ''), 256)
})

t.test('response: a large error or result is recognized without reading all of it', async (t) => {
  t.match(responseOf(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m","data":"${long}"}}`), {
    code: -32000,
  })
  t.same(responseOf(`{"jsonrpc":"2.0","id":1,"result":{"content":"${long}"}}`), {
    kind: 'result',
    toolError: false,
  })
})

t.test('response: isError is found before and after the content, and nowhere else', async (t) => {
  const results: readonly (readonly [string, boolean])[] = [
    [`{"isError":true,"content":"${long}"}`, true],
    [`{"content":"${long}","isError":true}`, true],
    [`{"content":"${long}","isError" : true ,"_meta":{"a":[{}],"b":"}}"}}`, true],
    [`{"content":"${long}","isError":false}`, false],
    [`{"content":"${long}","structuredContent":{"isError":true}}`, false],
    [`{"content":"${long}\\"isError\\":true"}`, false],
    [`{"content":[{"type":"text","text":"\\"isError\\":true}"}]}`, false],
    ['{"content":[{"isError":true}]}', false],
  ]
  for (const [result, expected] of results) {
    t.equal(isToolError(Buffer.from(result)), expected, result.slice(0, 40))
    t.equal(responseOf(`{"jsonrpc":"2.0","id":1,"result":${result}}`)?.toolError, expected, 'in its envelope')
    t.equal(responseOf(`{"result":${result},"jsonrpc":"2.0","id":1}`)?.kind, 'result')
  }
})

t.test('response: requests, notifications and other documents are not responses', async (t) => {
  for (const text of [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"error":{}}}',
    '{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    '{"status":"ok"}',
    '[{"error":{}}]',
    '{"error":"invalid_token"}',
    '{',
    '',
  ]) {
    t.equal(responseOf(text), undefined, text)
  }
})

function watched(chunks: readonly (string | Buffer)[], keep = 0): ResponseWatch {
  const watch = new ResponseWatch(keep)
  for (const chunk of chunks) watch.take(Buffer.from(chunk))
  return watch
}

const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"boom"}}'
const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'

t.test('watch: counts bytes and reads a JSON body in pieces of any size', async (t) => {
  for (const size of [1, 7, 100]) {
    const pieces = error.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []
    const watch = watched(pieces)
    t.match(watch.response(), { kind: 'error', code: -32000 })
    t.equal(watch.bytes, error.length)
  }
})

t.test('watch: finds the event that contains the response', async (t) => {
  const stream = `: keep-alive\n\nevent: message\ndata: ${progress}\n\nid: 7\r\ndata:${error}\r\n\r\n: bye\n\n`
  for (const size of [1, 5, 64, 1_000]) {
    const pieces = stream.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []
    const watch = watched(pieces)
    t.match(watch.response(), { kind: 'error', code: -32000 }, `pieces of ${size}`)
    t.equal(watch.body()?.text.trim(), error)
  }
  t.equal(watched([`data: ${progress}\n\n`]).response(), undefined)
})

t.test('watch: keeps only the beginning and the end of a stream with a large result', async (t) => {
  const result = `{"jsonrpc":"2.0","id":1,"result":{"content":"${'y'.repeat(1_000_000)}","isError":true}}`
  const watch = watched([`data: ${result.slice(0, 70_000)}`, result.slice(70_000), '\n', '\n'])
  t.same(watch.response(), { kind: 'result', toolError: true })
  t.equal(watch.body()?.text.length, 512)
  t.equal(watch.body()?.whole, false)
})

t.test('watch: keeps as much of the response as the record needs', async (t) => {
  t.same(watched([error], 2_000).body(), { text: error, whole: true })
  t.equal(watched([`{"a":"${long}"}`], 1_000).body()?.text.length, 1_000)
  t.equal(watched(['plain text']).body(), undefined)
  t.equal(watched([' \n', '{"jsonrpc":"2.0","id":1,"result":{}}']).response()?.kind, 'result')
})
