/** Headers from flags: the Name=Value form, what may be injected, and faults that do not repeat values. */
import t from 'tap'
import { headerNameProblem, headerValueProblem, injectedHeaders } from '../../../runtime/outgoing/index.ts'

const none = () => undefined

await t.test('injectedHeaders: the first = parts, the name is trimmed, the value is verbatim', async (t) => {
  const headers = injectedHeaders([' X-A = b=c, d ', 'X-Empty='], ['X-S=my-secret'], (name) =>
    name === 'my-secret' ? 's3' : undefined,
  )
  t.same(
    headers.map(({ name, value }) => [name, value()]),
    [
      ['x-a', ' b=c, d '],
      ['x-empty', ''],
      ['x-s', 's3'],
    ],
  )
})

await t.test('injectedHeaders: a secret is looked up at each use', async (t) => {
  let value = 'one'
  const [header] = injectedHeaders([], ['X-S=k'], () => value)
  value = 'two'
  t.equal(header?.value(), 'two')
})

await t.test('injectedHeaders: all faults at once, none quotes a value', async (t) => {
  const run = () =>
    injectedHeaders(
      ['hush-value', 'Bad Name=hush', 'Host=hush', 'X-A=1', 'x-a=hush', 'X-C=hush\u0007'],
      ['X-D=missing'],
      none,
    )
  t.throws(run, { code: 'INVALID_CONFIG' })
  try {
    run()
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    t.notMatch(message, /hush/)
    t.equal(message.split('\n').length, 6)
    t.match(message, /--remote-forward-headers: must have the form Name=/)
    t.match(message, /the header x-a is given twice/)
    t.match(message, /--remote-forward-headers-secret: the header X-D: the secret missing was not found/)
  }
})

await t.test('headerNameProblem: what belongs to the gateway stays with it, in any case', async (t) => {
  for (const name of [
    'Host',
    'connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'Proxy-Authorization',
    'Proxy-Authenticate',
    'Proxy-Connection',
    'Transfer-Encoding',
    'Content-Length',
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Port',
    'X-Forwarded-Prefix',
    'X-Real-IP',
    'Mcp-Session-Id',
    'Mcp-Protocol-Version',
    'Content-Type',
    'Content-Encoding',
    'Accept',
    '',
    'a b',
    'a:b',
    'é',
    'x'.repeat(257),
  ])
    t.type(headerNameProblem(name), 'string', name)
  for (const name of ['Authorization', 'Cookie', 'X-Api-Key', 'x'.repeat(256)])
    t.equal(headerNameProblem(name), undefined, name)
})

await t.test('headerValueProblem: control characters and length', async (t) => {
  for (const value of ['a\r\nb', 'a\0', '\u007f', '€', 'x'.repeat(8193)])
    t.type(headerValueProblem(value), 'string')
  for (const value of ['', 'a\tb', 'é', 'x'.repeat(8192)]) t.equal(headerValueProblem(value), undefined)
})
