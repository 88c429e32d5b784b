/** The log: format of a line, levels, children, and values that it never contains. */
import { inspect } from 'node:util'
import t from 'tap'
import { isColoured, logFormatFor, textLine } from '../../../schemas/index.ts'
import { makeLog, Secret } from '../../../runtime/observe/index.ts'
import type { LogLevel } from '../../../runtime/observe/log.ts'

function capture(level?: LogLevel) {
  const lines: string[] = []
  const log = makeLog({ level, name: 'test', destination: { write: (line: string) => lines.push(line) } })
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> }
}

await t.test('log: a line is one JSON object with level, RFC 3339 time, name and message', async (t) => {
  const { log, lines, last } = capture()
  log.info('it happened', { port: 8080, ok: true, path: '/mcp' })
  t.equal(lines.length, 1)
  t.match(lines[0], /\n$/)
  const line = last()
  t.match(line, { level: 'info', name: 'test', message: 'it happened', port: 8080, ok: true, path: '/mcp' })
  t.match(String(line['time']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

await t.test('log: levels below the chosen one are silent, children add their fields', async (t) => {
  const { log, lines, last } = capture('warn')
  log.info('no')
  log.debug('no')
  t.same(lines, [])
  log.child({ server: 'a' }).child({ part: 'b' }).warn('yes')
  t.match(last(), { server: 'a', part: 'b', level: 'warn' })
  t.equal(log.debugEnabled, false)
  t.equal(capture('debug').log.debugEnabled, true)
})

/** Returns the keys of a JSON object in order, including repeated ones. */
function keysOf(line: string): string[] {
  return [...line.matchAll(/[{,]"([^"]+)":/g)].map(([, name = '']) => name)
}

await t.test(
  'log: no key occurs twice in a line, whatever the fields of the line and its parents',
  async (t) => {
    const { log, lines, last } = capture('debug')
    const own = { level: 'x', time: 'x', name: 'x', message: 'x', stack: 'x' }
    const backend = log.child({ backend: 'a', part: 'b' }).child({ part: 'c' })
    backend.info('one', { backend: 'b', other: 1 })
    t.match(last(), { backend: 'b', part: 'c', other: 1 }, 'the latest value wins')
    log.child(own).warn('two', own)
    t.match(last(), { level: 'warn', name: 'test', message: 'two', field_name: 'x', field_level: 'x' })
    log.child({ err: 'x' }).error('three', { err: new Error('boom'), stack: 'x' })
    log.child(own).debug('four')
    log.info('five', own)
    t.equal(lines.length, 5)
    for (const line of lines) {
      const keys = keysOf(line.replace(/"err":\{[^}]*\}/, '"err":0'))
      t.same(keys, [...new Set(keys)], line)
    }
  },
)

await t.test('log: credentials are redacted by name, at every depth and in children', async (t) => {
  const { log, lines } = capture()
  const fields = {
    headers: { Authorization: 'Bearer s3cr3t', 'Set-Cookie': 'a=s3cr3t', 'Mcp-Session-Id': 's3cr3t' },
    access_token: 's3cr3t',
    refreshToken: 's3cr3t',
    clientSecret: 's3cr3t',
    code: 's3cr3t',
    code_verifier: 's3cr3t',
    list: [{ password: 's3cr3t' }],
    sessionId: 's3cr3t',
    secret: new Secret('s3cr3t'),
    wrapped: new Secret('s3cr3t'),
  }
  log.info('x', fields)
  log.child(fields).info('y')
  t.notMatch(lines.join(''), /s3cr3t/)
})

await t.test('log: credentials are redacted by their form, in texts and error chains', async (t) => {
  const { log, lines } = capture('debug')
  const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJzM2NyM3QifQ.s3cr3t'
  log.info('x', {
    note: `sent Bearer s3cr3t-token to https://user:s3cr3t@h.example/p?code=s3cr3t#s3cr3t and ${jwt}`,
  })
  log.error('x', { err: new Error('Basic czNjcjN0czNjcjN0', { cause: new Error(`got ${jwt}`) }) })
  log.error('x', { url: new URL('https://h.example/p?token=s3cr3t') })
  t.notMatch(lines.join(''), /s3cr3t|czNjcjN0|eyJ/)
  t.match(lines.join(''), 'https://h.example/p?[redacted]')
})

await t.test('log: stack traces appear at debug level only', async (t) => {
  const quiet = capture()
  quiet.log.error('x', { err: new Error('boom') })
  t.match(quiet.last(), { err: { type: 'Error', message: 'boom' } })
  t.notOk('stack' in quiet.last())
  const chatty = capture('debug')
  chatty.log.error('x', { err: new Error('boom') })
  t.match(chatty.last()['stack'], /log\.test/)
})

await t.test('secret: no kind of formatting shows the value', async (t) => {
  const secret = new Secret('s3cr3t')
  for (const text of [
    String(secret),
    ['a', secret].join(),
    JSON.stringify({ secret }),
    inspect({ secret }),
    inspect(secret),
  ]) {
    t.notMatch(text, /s3cr3t/)
    t.match(text, /\[secret\]/)
  }
  t.equal(secret.reveal(), 's3cr3t')
})

await t.test(
  'log: text for a terminal has time, level, message and fields, and no control characters',
  async (t) => {
    const lines: string[] = []
    const log = makeLog({
      format: 'text',
      name: 'test',
      destination: { write: (line) => void lines.push(line) },
    })
    log.warn('it happened', { backend: 'b', reason: 'two words', port: 1, evil: 'a\u001b[2Jb\u202ec' })
    t.match(
      lines[0],
      /^\d\d:\d\d:\d\d\.\d{3} WARN  it happened backend=b reason="two words" port=1 evil="a\\u001b\[2Jb\\u202ec"\n$/,
    )
  },
)

await t.test('log: the stream selects the format, and NO_COLOR disables colors', async (t) => {
  t.equal(logFormatFor(undefined, { isTTY: true }), 'text')
  t.equal(logFormatFor(undefined, {}), 'json')
  t.equal(logFormatFor('json', { isTTY: true }), 'json')
  t.equal(isColoured({ isTTY: true }, {}), true)
  t.equal(isColoured({ isTTY: true }, { NO_COLOR: '1' }), false)
  t.equal(isColoured({}, {}), false)
  t.match(
    textLine('{"level":"error","time":"2026-01-01T10:11:12.345Z","message":"m"}', { colour: true }),
    '\u001b[31mERROR',
  )
  t.equal(textLine('no line of ours \u0007\n', { colour: false }), 'no line of ours \\u0007\n')
})
