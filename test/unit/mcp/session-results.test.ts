/** Results for session clients: removed members, and results that keep their bytes. */
import t from 'tap'
import { sessionResult, withoutReservedMeta } from '../../../runtime/mcp/index.ts'

function view(result: string): string {
  return sessionResult(Buffer.from(result)).toString()
}

const OWN = 'io.modelcontextprotocol'

t.test('a result without members of the other era keeps its bytes', async (t) => {
  for (const result of [
    '{}',
    '{ "content" : [ {"type":"text","text":"resultType and \\u00e9 structuredContent"} ], "x": 1.0 }',
    '{"structuredContent" : {"a":12345678901234567890},"content":[],"_meta":{"own":1}}',
    `{"_meta":{"${OWN}/related-task":{"taskId":"1"},"${OWN}/model-immediate-response":"x"}}`,
  ]) {
    const bytes = Buffer.from(result)
    t.equal(sessionResult(bytes), bytes, result)
  }
})

t.test('reserved keys of _meta are removed everywhere, however they are written', async (t) => {
  t.equal(view(`{"a":1,"_meta":{"${OWN}/serverInfo":{},"${OWN}/future":1}}`), '{"a":1}')
  t.equal(
    view(`{"_meta":{"${OWN}/x":1,"own":2,"${OWN}/related-task":3}}`),
    `{"_meta":{"own":2,"${OWN}/related-task":3}}`,
  )
  t.equal(
    view(`{"_meta":{"io.modelcontextprotocol\\/x":1,"\\u0069o.modelcontextprotocol/y":1,"own":2}}`),
    '{"_meta":{"own":2}}',
  )
  t.equal(view(`{"\\u005fmeta":{"${OWN}/x":1}}`), '{}')
  t.equal(
    view(
      `{"content":[{"type":"text","text":"${OWN}/x","_meta":{"${OWN}/x":1}},{"type":"resource","resource":{"uri":"a","_meta":{"${OWN}/x":1,"b":2}}}]}`,
    ),
    `{"content":[{"type":"text","text":"${OWN}/x"},{"type":"resource","resource":{"uri":"a","_meta":{"b":2}}}]}`,
  )
  t.equal(
    view(`{"structuredContent":{"_meta":{"${OWN}/x":1}}}`),
    `{"structuredContent":{"_meta":{"${OWN}/x":1}}}`,
    'data of a tool is not changed',
  )
  t.throws(() => withoutReservedMeta(Buffer.from(`{"_meta":{"${OWN}/x":1},"_meta":{}}`)), {
    name: /Duplicate|JsonError/,
  })
})

t.test('reserved keys are searched only where results can have them', async (t) => {
  const deep = (levels: number, inner: string) =>
    `${'{"content":['.repeat(levels)}${inner}${']}'.repeat(levels)}`
  const reserved = `{"a":"\\u0041","_meta":{"${OWN}/x":1}}`
  t.equal(view(deep(3, reserved)), deep(3, '{"a":"\\u0041"}'))
  t.equal(
    view(deep(4, reserved)),
    deep(4, reserved),
    'no result is that deep, because each level would be read once more',
  )
  const plain = '{},'.repeat(300_000)
  t.equal(view(`{"content":[${plain}${reserved}]}`), `{"content":[${plain}{"a":"\\u0041"}]}`)
  t.throws(() => view(`{"content":[${`${reserved},`.repeat(100_001)}{}]}`), { name: 'JsonError' })
})

t.test('members of stateless results are removed', async (t) => {
  t.equal(view('{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"private"}'), '{"contents":[]}')
  t.equal(view('{"result\\u0054ype":"complete","contents":[]}'), '{"contents":[]}')
})

t.test(
  'structured content that is not an object becomes text, unless the content already contains it',
  async (t) => {
    t.equal(
      view('{"structuredContent":[1, 2],"content":[{"type":"text","text":"x"}]}'),
      '{"content":[{"type":"text","text":"x"}]}',
    )
    t.equal(view('{"structuredContent":[1, 2]}'), '{"content":[{"type":"text","text":"[1, 2]"}]}')
    t.equal(view('{"structuredContent":"s","content":[]}'), '{"content":[{"type":"text","text":"\\"s\\""}]}')
    t.equal(view('{"structuredContent":null,"content":[]}'), '{"content":[]}')
    const nested = '{"content":[{"_meta":{"structuredContent":[1]}}],"structuredContent":{}}'
    t.equal(view(nested), nested)
  },
)
