import t from 'tap'
import {
  type ClientMessage,
  clientRules,
  MessageError,
  paramsOf,
  inTurns,
  readLargeMessage,
  scanMessage,
} from '../../../runtime/mcp/index.ts'
import { JsonScanner } from '../../../runtime/mcp/json/scanner.ts'
import { maxClientValues } from '../../../runtime/mcp/message.ts'

function scan(text: string) {
  return scanMessage(Buffer.from(text))
}

t.test('scanMessage: distinguishes the four kinds of messages', async (t) => {
  t.equal(scan('{"jsonrpc":"2.0","id":1,"method":"ping"}').kind, 'request')
  t.equal(scan('{"jsonrpc":"2.0","method":"notifications/initialized"}').kind, 'notification')
  t.equal(scan('{"jsonrpc":"2.0","id":"a","result":{}}').kind, 'result')
  t.equal(scan('{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}').kind, 'error')
  t.equal(scan('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}').id, undefined)
})

t.test('scanMessage: an id keeps its exact text', async (t) => {
  t.equal(scan('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}').id, '12345678901234567890')
  t.equal(scan('{"jsonrpc":"2.0","id":"\\u0041","method":"ping"}').id, '"\\u0041"')
})

t.test('scanMessage: params and result keep their original bytes', async (t) => {
  const params = '{ "arguments":{"n":9007199254740993} }'
  t.equal(scan(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`).params?.toString(), params)
})

t.test('scanMessage: errors contain the id if it could be read', async (t) => {
  const cases: [string, string, string | undefined][] = [
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'BATCH_REFUSED', undefined],
    ['  [broken', 'BATCH_REFUSED', undefined],
    ['{"jsonrpc":"2.0",', 'PARSE_ERROR', undefined],
    ['', 'PARSE_ERROR', undefined],
    ['{"jsonrpc":"1.0","id":7,"method":"ping"}', 'INVALID_REQUEST', '7'],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 'INVALID_REQUEST', undefined],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 'INVALID_REQUEST', undefined],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', 'INVALID_REQUEST', undefined],
    ['{"jsonrpc":"2.0","id":7,"method":3}', 'INVALID_REQUEST', '7'],
    ['{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}', 'INVALID_REQUEST', '7'],
    ['{"jsonrpc":"2.0","id":7}', 'INVALID_REQUEST', '7'],
    ['{"jsonrpc":"2.0","id":7,"result":{},"error":{}}', 'INVALID_REQUEST', '7'],
    ['{"jsonrpc":"2.0","id":7,"method":"m","Method":"n"}', 'INVALID_REQUEST', undefined],
    ['"text"', 'PARSE_ERROR', undefined],
  ]
  for (const [text, code, id] of cases) {
    try {
      scan(text)
      t.fail(`accepted: ${text}`)
    } catch (error) {
      t.ok(error instanceof MessageError, text)
      if (error instanceof MessageError) t.strictSame([error.code, error.id], [code, id], text)
    }
  }
})

t.test('scanMessage: text that is not UTF-8 is rejected', async (t) => {
  const bytes = Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","method":"'),
    Buffer.from([0xc0, 0xaf]),
    Buffer.from('"}'),
  ])
  t.throws(() => scanMessage(bytes), { code: 'PARSE_ERROR' })
})

t.test('paramsOf: names that differ only in case are rejected', async (t) => {
  const message = scan('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}')
  t.throws(() => paramsOf(message), { code: 'INVALID_PARAMS', id: '1' })
})

t.test('paramsOf: scans large params once and does not parse the objects in them', async (t) => {
  const pad = '1,'.repeat(200_000)
  const message = scan(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":{"c":{"d":[${pad}1]}}}}}`,
  )
  const { feed } = JsonScanner.prototype
  let scanned = 0
  t.intercept(JsonScanner.prototype, 'feed', {
    value(this: JsonScanner, chunk: Buffer, offset?: number) {
      scanned += chunk.length
      feed.call(this, chunk, offset)
    },
  })
  paramsOf(message)
  t.equal(scanned, message.params?.length)
})

t.test('scanMessage: the number of values in a client message is bounded', async (t) => {
  const call = (values: number) =>
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"l":[${'1,'.repeat(values - 3)}1]}}`)
  t.equal(scanMessage(call(maxClientValues), clientRules).method, 'm')
  t.throws(() => scanMessage(call(maxClientValues + 1), clientRules), {
    code: 'INVALID_REQUEST',
    message: `Invalid Request: a member has more than ${maxClientValues} values`,
  })
  t.equal(scanMessage(call(maxClientValues + 1)).method, 'm', 'a backend may send more')
})

t.test('scanMessage: removes optional members that are null from a client message', async (t) => {
  const read = (members: string) => scanMessage(Buffer.from(`{"jsonrpc":"2.0",${members}}`), clientRules)
  for (const [members, rest] of [
    ['"id":1,"method":"m","params":null,"error":null,"result":null', '"id":1,"method":"m"'],
    ['"id":null,"method":"notifications/x","a":null', '"method":"notifications/x","a":null'],
    ['"id":1,"result":null,"error":{"code":null}', '"id":1,"error":{"code":null}'],
    ['"id":1,"result":{},"error":null', '"id":1,"result":{}'],
  ] as const)
    t.equal(read(members).bytes.toString(), `{"jsonrpc":"2.0",${rest}}`)
  for (const members of [
    '"id":null,"method":"m"',
    '"id":1,"method":null',
    '"id":1,"result":null',
    '"id":1,"result":null,"error":null',
  ])
    t.throws(() => read(members), { code: 'INVALID_REQUEST' }, members)
})

t.test('scanMessage: does not copy a message without removable nulls', async (t) => {
  const body = Buffer.from('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}')
  t.equal(scanMessage(body, clientRules).bytes, body)
})

t.test('readLargeMessage: a large message is read over several turns, with the same result', async (t) => {
  const { feed } = JsonScanner.prototype
  let scanned = 0
  t.intercept(JsonScanner.prototype, 'feed', {
    value(this: JsonScanner, chunk: Buffer, offset?: number) {
      scanned += chunk.length
      feed.call(this, chunk, offset)
    },
  })
  const pad = 'x'.repeat(300_000)
  for (const text of [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":null,"pad":""}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":null,"arguments":{"pad":""}},"error":null}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":null,"pad":""}}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":null,"pad":""}},"error":null}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1,"A":2,"pad":""}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"ref":{"a":1,"a":2},"pad":""}}',
    '{"jsonrpc":"2.0","id":1,"id":1,"method":"ping","params":{"pad":""}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":""},}',
    '[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":""}}]',
  ]) {
    const small = read(Buffer.from(text))
    const body = Buffer.from(text.replace('"pad":""', `"pad":"${pad}"`))
    const inSlices = await inTurns(readLargeMessage(body)).then(shown, shownError)
    t.equal(inSlices, small, text)
    scanned = 0
    t.equal(read(body), small, text)
    t.equal(scanned, 0, `${text}: nothing is scanned in one turn`)
  }
})

t.test('readLargeMessage: removes nulls from several large objects in short steps', async (t) => {
  const others = Array.from({ length: 9_900 }, (_, i) => `"k${i}":null`).join(',')
  const object = (known: string) => `{"${known}":null,${others},"pad":"${'x'.repeat(200_000)}"}`
  const params = `{"ref":${object('type')},"argument":${object('name')},"context":{"arguments":${object('a')}},"_meta":${object('progressToken')}}`
  const text = `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":${params}}`
  let share = 1
  // Retries, because a garbage collection can lengthen a step.
  for (let attempt = 0; attempt < 5 && share > 0.33; attempt++) {
    const work = readLargeMessage(Buffer.from(text))
    const began = performance.now()
    let longest = 0
    for (let from = began, isDone = false; !isDone; from = performance.now()) {
      isDone = work.next().done === true
      longest = Math.max(longest, performance.now() - from)
    }
    share = Math.min(share, longest / (performance.now() - began))
  }
  t.ok(share <= 0.33, `the longest step takes ${share} of the time`)
})

function read(body: Buffer): string {
  try {
    const message = scanMessage(body, clientRules)
    return shown({ message, params: paramsOf(message) })
  } catch (error) {
    return shownError(error)
  }
}

function shown({ message, params }: ClientMessage): string {
  const text = `${message.kind} ${message.bytes.toString()} ${params.bytes.toString()}`
  return text.replaceAll(/x{300000}/g, '')
}

function shownError(error: unknown): string {
  const { code, message, id } = error as MessageError
  return `${code} ${message} ${id}`
}
