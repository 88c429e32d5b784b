/** Responses of REST services are processed as bytes, and large responses in slices. */
import t from 'tap'
import { fieldTree, isJsonValue, quoted, withOnly } from '../../../runtime/vmcp/backends/openapi/json-text.ts'

/** Runs work and counts the slices. */
function run<T>(work: Generator<undefined, T, undefined>): { readonly value: T; readonly slices: number } {
  for (let slices = 0; ; slices++) {
    const step = work.next()
    if (step.done) return { value: step.value, slices }
  }
}

const only = (json: string, ...paths: string[]): string =>
  run(withOnly(Buffer.from(json), fieldTree(paths))).value.toString()

await t.test('one JSON value is recognized', async (t) => {
  for (const json of ['{}', ' [1, {"a":[]}] ', '"a,b"', 'null', '-1.5e3'])
    t.ok(run(isJsonValue(Buffer.from(json))).value, json)
  for (const text of [
    '',
    '1,2',
    '1],[2',
    '{',
    '{"a":1}]',
    'nul',
    '{"a":1,}',
    '['.repeat(300) + ']'.repeat(300),
  ])
    t.notOk(run(isJsonValue(Buffer.from(text))).value, text.slice(0, 20))
})

await t.test('text is quoted across slices, without a change to its characters', async (t) => {
  for (const text of ['', 'a"b\\\n\u0000', `${'x'.repeat(256 * 1024 - 1)}😀${'"'.repeat(300_000)}`])
    t.equal(JSON.parse(run(quoted(text)).value.toString()), text)
})

await t.test('only the selected members are kept', async (t) => {
  t.equal(only('{"a":1,"b":2,"c":3}', 'b'), '{"b":2}')
  t.equal(only('{ "a" : 1 , "b" : [ 1 , "]" ] , "c" : 3 }', 'a', 'c'), '{"a" :1 ,"c" :3 }')
  t.equal(
    only('[{"a":{"x":1,"y":2}},{"a":5},7,"{",[{"b":1,"a":{"y":[{}]}}]]', 'a.y'),
    '[{"a":{"y":2}},{"a":5},7,"{",[{"a":{"y":[{}]}}]]',
  )
  t.equal(
    only('{"data":{"id":12345678901234567890,"n":{"a":"\\"}"}},"x":{"data":1}}', 'data.id', 'data'),
    '{"data":{"id":12345678901234567890,"n":{"a":"\\"}"}}}',
  )
  t.equal(only('{"\\u0061":1,"__proto__":{"a":1},"b":"\\\\"}', 'a', 'b'), '{"\\u0061":1,"b":"\\\\"}')
  for (const json of ['5', '"a"', 'null', '[]', '{}', '[[],[]]']) t.equal(only(json, 'a'), json)
})

await t.test('the result is equal to a selection from the parsed value', async (t) => {
  const names = ['a', 'b', 'c"', '\\', 'é']
  let seed = 1
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
  const make = (depth: number): unknown => {
    const kind = random(depth > 4 ? 3 : 5)
    if (kind === 3) return Array.from({ length: random(4) }, () => make(depth + 1))
    if (kind === 4) return Object.fromEntries(names.slice(random(5)).map((name) => [name, make(depth + 1)]))
    return [random(100), 'a{"b":[1]}\\', null][kind]
  }
  const select = (value: unknown, paths: readonly string[][]): unknown => {
    if (Array.isArray(value)) return value.map((item) => select(item, paths))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, member]) => {
        const below = paths.filter(([first]) => first === name).map((path) => path.slice(1))
        if (below.length === 0) return []
        return [[name, below.some((rest) => rest.length === 0) ? member : select(member, below)]]
      }),
    )
  }
  const paths = ['a.b', 'a.c"', 'é', 'b.a.a']
  for (let n = 0; n < 500; n++) {
    const value = make(0)
    const spaced = n % 2 === 0 ? JSON.stringify(value) : JSON.stringify(value, null, 1)
    const split = paths.map((path) => path.split('.'))
    t.same(JSON.parse(only(spaced, ...paths)), select(value, split), spaced)
  }
})

await t.test('large responses are processed in slices', async (t) => {
  const size = 4 * 1024 * 1024
  for (const item of ['1,', '12345678901234567890,', '{"b":1},', '[{"a":[1]}],', `"${'x'.repeat(999)}",`]) {
    const json = Buffer.from(`{"a":[${item.repeat(size / item.length)}0],"b":[${item}0]}`)
    t.ok(run(isJsonValue(json)).slices >= 20, 'check')
    t.ok(run(quoted(json.toString())).slices >= 10, 'quote')
    for (const path of ['a.b', 'a', 'b']) t.ok(run(withOnly(json, fieldTree([path]))).slices >= 20, path)
  }
})
