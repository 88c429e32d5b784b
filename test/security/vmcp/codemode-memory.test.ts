/**
 * Scripts that use as much memory as possible, with every kind of value: the meter ends them before the heap of their
 * worker is full. A heap that fills up inside one native function ends the whole process, including this test.
 */
import t from 'tap'
import { scriptPool } from '../../../runtime/vmcp/features/scripts/settings.ts'
import { startScripts } from '../../helpers/vmcp/scripts.ts'

t.setTimeout(400_000)

const MANY = '1 << 40'
const GIB = 1024 ** 3

/** Results of a tool: the JSON of its structured content. */
const RESULTS: Readonly<Record<string, () => string>> = {
  'empty lists': () => repeated('[]', 800_000),
  'short lists': () => repeated('[1]', 620_000),
  'empty objects': () => repeated('{}', 750_000),
  'small objects': () => repeated('{"a":1}', 300_000),
  floats: () => repeated('1.5', 3_100_000),
  'large integers': () => repeated('9007199254740993123', 1_700_000),
  'short texts': () => repeated('"ab"', 1_300_000),
  'texts with escapes': () => repeated('"\\na"', 800_000),
  'one text of escapes': () => `["${'\\u00e9'.repeat(1_900_000)}"]`,
  'nested lists': () => repeated(`${'['.repeat(190)}${']'.repeat(190)}`, 3_400),
  'many keys': () => `{${Array.from({ length: 480_000 }, (_, i) => `"k${i}":1.5`).join(',')}}`,
}

const SCRIPTS: Readonly<Record<string, string>> = {
  'a text of line breaks, returned': 'return "\\n" * 30000000',
  'a text of quotes, returned': 'return "\\"" * 14000000',
  'a text of line breaks, as an argument': 'return tool(a="\\n" * 14000000)',
  'a text of line breaks, written': 'return len(repr("\\n" * 14000000))',
  'a text of line breaks, in a format': 'return len("%r" % ("\\n" * 14000000))',
  'a text of line breaks, divided': 'return len(("\\n" * 14000000).splitlines())',
  'a text of other letters, returned': 'return "世" * 10000000',
  'a long message': 'fail("\\n" * 30000000)',
  'the same text many times': 's = "\\n" * 1000000\nreturn [s] * 20',
  floats: `x = [i + 0.5 for i in range(${MANY})]`,
  'large integers': `x = [i + (1 << 60) for i in range(${MANY})]`,
  lists: `x = [[1] for i in range(${MANY})]`,
  'lists that grow': `x = []\nfor i in range(${MANY}):\n  y = []\n  y.append(i)\n  x.append(y)`,
  dicts: `x = [{} for i in range(${MANY})]`,
  'entries of a dict': `x = {}\nfor i in range(${MANY}): x[i + 0.5] = i + 0.5`,
  functions: `x = [lambda: i for i in range(${MANY})]`,
  ranges: `x = [range(i) for i in range(${MANY})]`,
  methods: `x = [[].append for i in range(${MANY})]`,
  'results of many calls': 'return len([tool() for i in range(50)])',
  'results of calls side by side': 'return len(parallel([lambda: tool() for i in range(50)]))',
}

function repeated(item: string, count: number): string {
  return `[${`${item},`.repeat(count)}${item}]`
}

t.test('memory: no script value fills the heap of its worker', async (t) => {
  let json = '1'
  const content = () => Buffer.from(`{"content":[],"structuredContent":${json}}`)
  const { run } = startScripts(
    t,
    { stepLimit: 1e9 },
    async () => ({ kind: 'result', result: content() }),
    scriptPool(3 * GIB),
  )
  for (const [what, make] of Object.entries(RESULTS)) {
    json = make()
    t.notMatch(await run('x = tool()\nreturn len(x)'), /ran out of memory|internal error/, what)
    t.notMatch(await run('return tool()'), /ran out of memory|internal error/, `${what}, returned`)
  }
  json = JSON.stringify('x'.repeat(10_000_000))
  for (const [what, script] of Object.entries(SCRIPTS)) {
    const text = await run(script)
    t.match(text, /"isError":true/, what)
    t.notMatch(text, /ran out of memory|internal error/, what)
  }
  t.match(await run('return 1 + 1'), /"text":"2"/, 'the server continues')
})

t.test('a script with a large result: the whole text arrives, or an error with the limit', async (t) => {
  const { run } = startScripts(t, { stepLimit: 1e6 }, undefined, scriptPool(3 * GIB))
  const all = JSON.parse(await run('return "x" * (8 << 20)')) as { content: { text: string }[] }
  t.equal(all.content[0]?.text.length, 8 * 1024 * 1024 + 2)
  t.match(await run('return "x" * (20 << 20)'), /the result is 20971522 bytes of JSON; the limit is 16777216/)
})
