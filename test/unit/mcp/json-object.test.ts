import fc from 'fast-check'
import t from 'tap'
import { DuplicateMember, JsonError, JsonObject, scanElements } from '../../../runtime/mcp/index.ts'
import { JsonBoundError, maxDepth } from '../../../runtime/mcp/json/errors.ts'

function object(text: string): JsonObject {
  return new JsonObject(Buffer.from(text))
}

t.test('JsonObject: accepts what JSON.parse accepts and keeps every value', async () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.constantFrom(undefined, 1, '\t'),
      (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        const read = object(text)
        const parsed: Record<string, unknown> = JSON.parse(text)
        return (
          read.names().length === Object.keys(parsed).length &&
          read.names().every((name) => JSON.stringify(read.value(name)) === JSON.stringify(parsed[name]))
        )
      },
    ),
  )
})

t.test('JsonObject: long runs of white space are accepted everywhere', async (t) => {
  const blanks = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), minLength: 60, maxLength: 90 })
  fc.assert(
    fc.property(blanks, fc.nat({ max: 7 }), fc.nat({ max: 7 }), (run, before, after) => {
      const text = `${' '.repeat(before)}{"a":${run}[${run}1,${run}"${' '.repeat(after)}"${run}]${run},${run}"b"${run}:2}`
      const read = object(text)
      return JSON.stringify(read.value('a')) === JSON.stringify(JSON.parse(text).a) && read.value('b') === 2
    }),
  )
  for (const end of ['', '\v', '\f', '\u00a0', 'x'])
    for (let n = 60; n < 72; n++) t.throws(() => object(`{"a":1${' '.repeat(n)}${end}`), JsonError)
})

t.test('JsonObject: rejects exactly what JSON.parse rejects', async (t) => {
  const alphabet = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"',
    '\\',
    'u',
    '0',
    '1',
    '-',
    '.',
    'e',
    't',
    ' ',
    'null',
    'true',
    '"a"',
  )
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), (parts) => {
      const text = `{"a":${parts.join('')}}`
      return accepts(() => JSON.parse(text)) === accepts(() => object(text)) || hasDuplicates(text)
    }),
    { numRuns: 2000 },
  )
  for (const text of [
    '{"a":01}',
    '{"a":+1}',
    '{"a":1.}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":1,}',
    '{a:1}',
    '{"a":NaN}',
    '{"a":1}x',
    '',
  ]) {
    t.throws(() => object(text), JsonError, text)
  }
})

function accepts(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

/** JSON.parse accepts repeated members and keeps the last one; JsonObject rejects them. */
function hasDuplicates(text: string): boolean {
  try {
    object(text)
    return false
  } catch (error) {
    return error instanceof DuplicateMember
  }
}

t.test('JsonObject: a repeated member is rejected, however it is escaped', async (t) => {
  t.throws(() => object('{"name":1,"name":2}'), DuplicateMember)
  t.throws(() => object('{"name":1,"n\\u0061me":2}'), DuplicateMember)
  t.throws(() => new JsonObject(Buffer.from('{"name":1,"NAME":2}'), { ignoreCase: true }), DuplicateMember)
  t.doesNotThrow(() => object('{"name":1,"NAME":2}'))
})

t.test('JsonObject: nesting is bounded', async (t) => {
  const nest = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
  t.doesNotThrow(() => object(nest(maxDepth)))
  t.throws(() => object(nest(maxDepth + 2)), JsonBoundError)
})

t.test('JsonObject.with: unchanged members keep their bytes', async (t) => {
  const big = '{ "n": 123456789012345678901234567890, "s":"\\u00e9\\/", "x":1e400 ,"y":[1, 2]}'
  const changed = object(big).with({ s: '"new"', y: undefined, z: 'true' }).toString()
  t.equal(changed, '{"n": 123456789012345678901234567890,"s":"new","x":1e400,"z":true}')
  t.equal(object('{}').with({ a: '1' }).toString(), '{"a":1}')
  t.equal(object('{"a":1}').with({ a: undefined }).toString(), '{}')
})

t.test('scanElements: splits an array without parsing its elements', async (t) => {
  const elements = scanElements(Buffer.from(' [1, {"a":[2]} ,"x,]"]'))
  t.same(elements.map(String), ['1', '{"a":[2]}', '"x,]"'])
  t.throws(() => scanElements(Buffer.from('[1,]')), JsonError)
})

t.test('JsonObject: long strings are checked like short ones at any position', async () => {
  const special = fc.constantFrom(
    '\n',
    '\u0000',
    '\u001f',
    '"',
    '\\',
    '\\q',
    '\\u12G4',
    'é',
    '\u007f',
    '\u0080',
  )
  fc.assert(
    fc.property(fc.nat(300), fc.nat(300), special, fc.nat(7), (before, after, middle, shift) => {
      const text = `${' '.repeat(shift)}{"a":"${'x'.repeat(before)}${middle}${'y'.repeat(after)}"}`
      return accepts(() => JSON.parse(text)) === accepts(() => object(text))
    }),
    { numRuns: 2000 },
  )
})

t.test('JsonObject: a changed object has the same members as its text', async (t) => {
  for (const pad of ['', 'x'.repeat(300_000)]) {
    const changed = object(`{ "a" :1,"\\u0062": "${pad}" , "c":{"é":2} }`).changed({
      a: undefined,
      c: '["é"]',
      'd"': Buffer.from('"ü"'),
    })
    const read = new JsonObject(Buffer.from(changed.bytes))
    t.strictSame(changed.entries(), read.entries(), `${changed.bytes.length} bytes`)
    t.strictSame(changed.names(), ['b', 'c', 'd"'])
    t.equal(changed.raw('b')?.length, pad.length + 2)
  }
})
