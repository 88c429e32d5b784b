/** Bodies in the audit log: redacted credentials, truncation instead of omission, and always one line of JSON. */
import t from 'tap'
import { recordedPayload } from '../../../runtime/observe/audit/payload.ts'
import { proves } from '../../helpers/proves.ts'

proves('3.config.audit.maxDataSize')

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl'

function record(value: unknown, maxBytes = 1024, whole = true) {
  return recordedPayload(typeof value === 'string' ? value : JSON.stringify(value), { whole }, maxBytes)
}

t.test('payload: a small body is kept as JSON, unchanged except for white space', async (t) => {
  t.same(record('{ "id" : 12345678901234567890,\n "a": [1, "x y", null, true] }'), {
    json: '{"id":12345678901234567890,"a":[1,"x y",null,true]}',
    truncated: false,
  })
})

t.test(
  'payload: a body with a repeated key becomes a string, so that the line has no repeated key',
  async (t) => {
    for (const body of ['{"a":1,"b":{"c":":","c":2}}', '[{"x":[],"x":{}}]', '{"a":1,"\\u0061":2}'])
      t.equal(record(body)?.json, JSON.stringify(body))
    for (const body of ['{"a":":","b":{"a":{},"c":[{"a":null},{"a":1}]}}', '{"__proto__":1,"1":{"1":2}}'])
      t.equal(record(body)?.json, body)
  },
)

t.test("payload: the value under a credential's name is redacted, whatever its type", async (t) => {
  const body = {
    arguments: { password: 'hunter2', apiKey: ['k1', { deep: 'k2' }], nested: { access_token: 12_345 } },
    Authorization: 'hunter3',
    plain: 'stays',
  }
  const { json = '' } = record(body) ?? {}
  t.notMatch(json, /hunter|k1|k2|12345/)
  t.same(JSON.parse(json), {
    arguments: { password: '[redacted]', apiKey: '[redacted]', nested: { access_token: '[redacted]' } },
    Authorization: '[redacted]',
    plain: 'stays',
  })
})

t.test('payload: texts that look like credentials are redacted in every string', async (t) => {
  const { json = '' } =
    record({
      a: `use Bearer abcdef123456 or ${jwt}`,
      b: 'https://user:pa55@host.example/p?code=abc',
      c: 'AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijklmnop',
    }) ?? {}
  t.notMatch(json, /abcdef123456|eyJ|pa55|code=abc|AKIAI|ghp_0/)
  t.match(json, 'https://host.example/p')
})

t.test('payload: JSON inside a string is also redacted by name', async (t) => {
  const { json = '' } = record({ content: [{ text: '{"client_secret": "s3cr3t", "n": 1}' }] }) ?? {}
  t.notMatch(json, /s3cr3t/)
  t.match(json, /\\"n\\":1/)
  const broken = record({ text: 'see {"client_secret": "s3cr3t word", and' }) ?? { json: '' }
  t.notMatch(broken.json, /s3cr3t|word/)
})

t.test('payload: ambiguous names redact only values that could be credentials', async (t) => {
  const { json = '' } = record({ error: { code: -32602 }, code: 'print("x")', state: 'a9f8e7d6c5b4a3' }) ?? {}
  t.same(JSON.parse(json), { error: { code: -32602 }, code: 'print("x")', state: '[redacted]' })
})

t.test('payload: a body beyond the limit is truncated and becomes a string', async (t) => {
  for (const maxBytes of [1, 5, 40, 100]) {
    const cut = record({ text: 'öäü '.repeat(200) }, maxBytes)
    t.equal(cut?.truncated, true)
    const text: unknown = JSON.parse(cut?.json ?? '')
    t.ok(typeof text === 'string' && Buffer.byteLength(text) <= maxBytes, `within ${maxBytes} bytes`)
    t.notMatch(text, /\ufffd/, 'no broken character')
  }
  t.equal(record({ a: 'x' }, 9)?.truncated, false, 'exactly the bound is whole')
  t.equal(record({ a: 'xy' }, 9)?.truncated, true)
})

t.test('payload: a truncated body never contains a part of a credential', async (t) => {
  const body = JSON.stringify({ a: 1, note: `the token ${jwt}`, token: 'hunter2hunter2', b: 2 })
  for (let length = 1; length < body.length; length++) {
    const { json = '' } = recordedPayload(body.slice(0, length), { whole: false }, 1024) ?? {}
    if (/eyJ|hunter/.test(json)) t.fail(`at ${length}: ${json}`)
  }
  t.pass('every prefix was tried')
})

t.test('payload: a body that is not JSON is not recorded', async (t) => {
  t.equal(record('grant_type=password&password=x'), undefined)
  t.equal(record(''), undefined)
  t.equal(record('  "text"'), undefined)
})

t.test('payload: malformed JSON never breaks the line', async (t) => {
  for (const text of [
    '{"a":"x\ny"}',
    '{"a"',
    '[1,2',
    '{]}',
    '{"a":}\n{}',
    '[[[["\\',
    '{"password"',
    '{"a":1} \u0000',
  ]) {
    const { json = '' } = record(text) ?? {}
    t.notMatch(json, /\n/)
    t.doesNotThrow(() => JSON.parse(json))
  }
})
