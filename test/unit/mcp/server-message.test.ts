/** Messages of servers, small and large: which errors are repaired, and which are not. */
import t from 'tap'
import {
  type EnvelopeRepair,
  type Message,
  readServerMessage,
  responseIdIn,
} from '../../../runtime/mcp/index.ts'

async function read(text: string | Buffer): Promise<{ message: Message; repairs: EnvelopeRepair[] }> {
  const repairs: EnvelopeRepair[] = []
  const message = await readServerMessage(Buffer.from(text), (repair) => repairs.push(repair))
  return { message, repairs }
}

const blob = 'x'.repeat(300_000)

for (const [size, filler] of [
  ['small', ''],
  ['large', `,"blob":"${blob}"`],
] as const) {
  const result = `{"a":1${filler}}`
  const cases: readonly [text: string, repairs: EnvelopeRepair[], bytes: string][] = [
    [`{"jsonrpc":"2.0","id":1,"result":${result}}`, [], `{"jsonrpc":"2.0","id":1,"result":${result}}`],
    [
      `{"jsonrpc":"2.0","id":1,"result":${result},"error":null}`,
      ['null_member'],
      `{"jsonrpc":"2.0","id":1,"result":${result}}`,
    ],
    [
      ` [ {"jsonrpc":"2.0","id":1,"result":${result}} ] `,
      ['response_in_list'],
      `{"jsonrpc":"2.0","id":1,"result":${result}}`,
    ],
    [
      `\ufeff[{"id":1.0,"result":${result},"method":null}]`,
      ['byte_order_mark', 'response_in_list', 'null_member', 'version_missing', 'id_type'],
      `{"id":1,"result":${result},"jsonrpc":"2.0"}`,
    ],
    [
      `{"jsonrpc":"2.0","method":"notifications/x","id":null,"params":{"a":1${filler}}}`,
      ['null_member'],
      `{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1${filler}}}`,
    ],
  ]
  t.test(`${size}: an unambiguous error is repaired`, async (t) => {
    for (const [text, repairs, bytes] of cases) {
      const got = await read(text)
      t.same(got.repairs, repairs, text.slice(0, 60))
      t.equal(got.message.bytes.toString(), bytes)
    }
  })
  t.test(`${size}: an ambiguous message is invalid`, async (t) => {
    for (const text of [
      `[{"jsonrpc":"2.0","id":1,"result":${result}},{"jsonrpc":"2.0","id":2,"result":{}}]`,
      `[[{"jsonrpc":"2.0","id":1,"result":${result}}]]`,
      `[{"jsonrpc":"2.0","id":1,"result":${result}}`,
      `{"jsonrpc":"1.0","id":1,"result":${result}}`,
      `{"jsonrpc":2.0,"id":1,"result":${result}}`,
      `{"jsonrpc":"2.0","id":1,"result":${result},"error":{"code":1,"message":"x"}}`,
      `{"jsonrpc":"2.0","id":1,"result":{},"Result":${result}}`,
      `{"jsonrpc":"2.0","id":1.5,"result":${result}}`,
      `{"jsonrpc":"2.0","id":null,"result":${result}}`,
      `{"jsonrpc":"2.0","result":${result}}`,
      `{"jsonrpc":"2.0","id":1,"result":[${result}]}`,
      `{"method":"GET","params":${result}}`,
      `{"a":${result}}`,
      `"${filler.replaceAll('"', '')}"`,
    ])
      await t.rejects(read(text), { code: /PARSE_ERROR|INVALID_REQUEST|BATCH_REFUSED/ }, text.slice(0, 60))
  })
}

t.test('an empty list or null becomes an empty result or absent params', async (t) => {
  for (const empty of ['null', '[]', '[ ]'])
    t.match(await read(`{"jsonrpc":"2.0","id":1,"result":${empty}}`), {
      message: { kind: 'result', result: Buffer.from('{}') },
      repairs: ['null_member'],
    })
  t.match(await read('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"},"result":null}'), {
    message: { kind: 'error', result: undefined },
  })
  t.match(await read('{"jsonrpc":"2.0","id":1,"result":null,"error":null}'), { message: { kind: 'result' } })
  for (const empty of ['null', '[]'])
    t.match(await read(`{"jsonrpc":"2.0","method":"m","params":${empty}}`), {
      message: { kind: 'notification', params: undefined },
    })
})

t.test('text that is not UTF-8 is not a message', async (t) => {
  for (const body of ['[{"jsonrpc":"2.0","id":1,"result":{"a":"', '{"jsonrpc":"2.0","id":1,"result":{"a":"'])
    await t.rejects(read(Buffer.concat([Buffer.from(body), Buffer.from([0xff]), Buffer.from('"}}')])))
})

t.test('responseIdIn: finds the id of an unreadable response', async (t) => {
  const idIn = (text: string) => responseIdIn(Buffer.from(text))
  t.equal(idIn('{"jsonrpc":"2.0","id":7,"result":{"a":'), '7')
  t.equal(idIn('{"id":"x","jsonrpc":"2.0","error":'), '"x"')
  for (const text of [
    '{"level":"info","id":1,"error":"timeout talking to db"}',
    '{"time":1,"id":3,"result":"ok"}',
    '{"id":2,"ts":5,"result":[1,2]}',
    '{"jsonrpc":"1.0","id":7,"result":{}',
    '{"jsonrpc":2.0,"id":7,"result":{}',
    '{"id":7,"result":{},"jsonrpc":"2.0"',
    '{"a":{"jsonrpc":"2.0"},"id":7,"result":{}',
    '{"jsonrpc":"2.0","id":7,"method":"ping","result":{}',
    '{"jsonrpc":"2.0","id":[1],"result":{}',
    '{"jsonrpc":"2.0","id":1.5,"result":{}',
    '{"jsonrpc":"2.0","result":{},"id":7',
    '{"jsonrpc":"2.0","a":{"id":7,"result":1}',
    'usage: {"id":7,"result":1}',
  ])
    t.equal(idIn(text), undefined, text)
})
