/**
 * Compares JSON that is read in slices with JSON that is read at once: both accept the same values and end at the same
 * byte, for any slices.
 *
 * `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  inTurns,
  readServerMessage,
  scanElements,
  scanMessage,
  sessionResult,
  sessionResultInTurns,
} from '../../runtime/mcp/index.ts'
import { smallMembers } from '../../runtime/mcp/json/object.ts'
import { type JsonMember, scannedMembers } from '../../runtime/mcp/json/read.ts'
import { JsonScanner } from '../../runtime/mcp/json/scanner.ts'

t.setTimeout(900_000)

const CASES = Number(process.env['FC_RUNS'] ?? 300)

/** Valid JSON in many layouts, sometimes with one byte changed, removed or added. */
const text = fc
  .tuple(
    fc.json({ maxDepth: 6 }),
    fc.constantFrom('', ' ', '\n\t', ' '.repeat(90)),
    fc.option(fc.tuple(fc.nat(), fc.constantFrom(...'[]{},:"\\ u0-.eEtfn\u0001'.split(''), ''))),
    fc.constantFrom('', 'x'.repeat(200), '\\u00e9\\n'.repeat(20), '[[]'.repeat(3)),
  )
  .map(([json, blank, change, filler]) => {
    const spread = `{"f":"${filler}",${blank}"v":${json.replaceAll(',', `${blank},${blank}`)}${blank}}`
    if (!change) return spread
    const at = change[0] % spread.length
    return spread.slice(0, at) + change[1] + spread.slice(at + 1)
  })

function atOnce(json: Buffer): number | undefined {
  try {
    const [first] = scanElements(Buffer.concat([Buffer.from('['), json, Buffer.from(']')]))
    return first?.length
  } catch {
    return undefined
  }
}

function inSlices(json: Buffer, step: number): number | undefined {
  try {
    const scanner = new JsonScanner()
    for (let from = 0; from < json.length; from += step) {
      scanner.feed(json.subarray(from, from + step))
      while (scanner.advance() !== 'chunk') if (scanner.isDone) return from + scanner.at
    }
    return undefined
  } catch {
    return undefined
  }
}

t.test('json: a value ends at the same byte in slices as at once', async (t) => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 40 }), (json, step) => {
      const bytes = Buffer.from(json)
      const once = atOnce(bytes)
      const sliced = inSlices(bytes, step)
      // The scanner does not check the text after the value.
      return once === undefined ? sliced === undefined || sliced < bytes.length : sliced === once
    }),
    { numRuns: CASES * 10 },
  )
  t.pass('all alike')
})

t.test('json: both readers have the same depth limit', async (t) => {
  for (const depth of [255, 256, 257, 258, 300]) {
    for (const [open, inner, close] of [
      ['[', '', ']'],
      ['[', '1', ']'],
      ['{"a":', '1', '}'],
      ['{"a":', '{}', '}'],
    ] as const) {
      const json = Buffer.from(open.repeat(depth) + inner + close.repeat(depth))
      const isRead = inSlices(Buffer.concat([Buffer.from('['), json, Buffer.from(']')]), 7) !== undefined
      t.equal(isRead, atOnce(json) !== undefined, `${open} ${depth} ${inner}`)
    }
  }
})

/** Returns the scanner's result for an object, or undefined when it throws. */
function scanned(json: Buffer, maxValues?: number): readonly JsonMember[] | undefined {
  try {
    return scannedMembers(json, maxValues)
  } catch {
    return undefined
  }
}

t.test('json: the reader of small objects returns what the scanner returns', async (t) => {
  const fragments = fc
    .array(
      fc.constantFrom(
        ...'{}[]:,"\\/u0123eE+-. \n\u0001é'.split(''),
        'true',
        'null',
        'fals',
        '"a":',
        '\\n',
        '\\u12aF',
      ),
      {
        maxLength: 14,
      },
    )
    .map((parts) => `{"a":${parts.join('')}}`)
  const values = fc.constantFrom(undefined, 1, 2, 5)
  for (const texts of [text, fragments])
    fc.assert(
      fc.property(texts, values, fc.nat(12), (json, maxValues, lost) => {
        const bytes = Buffer.from(json).subarray(0, lost < 3 ? -lost : undefined)
        return same(smallMembers(bytes, maxValues), scanned(bytes, maxValues))
      }),
      { numRuns: CASES * 10 },
    )
  t.pass('all alike')
})

t.test('json: the reader of small objects enforces the limits of the scanner', async (t) => {
  const many = (n: number) => `{${Array.from({ length: n }, (_, i) => `"${i}":0`).join(',')}}`
  const cases = [
    ...[
      '',
      ' ',
      '{',
      '{}',
      ' {} ',
      '{}x',
      '{} {}',
      '[]',
      '"a"',
      '1',
      'null',
      '{"a"}',
      '{"a":1,}',
      '{,}',
      '{"a":1 "b":2}',
    ],
    ...[
      '{"a":[1,]}',
      '{"a":{]}',
      '{"a":1]',
      '{"a":01}',
      '{"a":-}',
      '{"a":1.}',
      '{"a":1e}',
      '{"a":1e+}',
      '{"a":1e-5}',
    ],
    ...[
      '{"a":truex}',
      '{"a":nul}',
      '{"a":"\\',
      '{"a":"\\u',
      '{"a":"\\ud800"}',
      '{"\\u0061\\"":1}',
      '{"a":1,"a":2}',
    ],
    ...[65_532, 65_533, 65_534, 65_535].flatMap((n) => [
      `{"${'n'.repeat(n)}":1}`,
      `{"a":{"${'n'.repeat(n)}":1}}`,
      `{"${'\\n'.repeat(n / 2)}":1}`,
      `{"a":${'1'.repeat(n + 2)}}`,
    ]),
    ...[9_999, 10_000, 10_001].map(many),
    ...[255, 256, 257, 258].flatMap((n) => [
      `{"a":${'['.repeat(n)}${']'.repeat(n)}}`,
      `{"a":${'['.repeat(n)}1${']'.repeat(n)}}`,
      `{"a":${'{"b":'.repeat(n)}{}${'}'.repeat(n)}}`,
      `{"a":${'{"b":'.repeat(n)}1${'}'.repeat(n)}}`,
    ]),
  ]
  for (const json of cases) {
    const bytes = Buffer.from(json)
    t.strictSame(smallMembers(bytes), scanned(bytes), json.slice(0, 40))
  }
  t.equal(cases.filter((json) => scanned(Buffer.from(json))).length, 30, 'both sides of each limit')
})

function same(one: readonly JsonMember[] | undefined, other: readonly JsonMember[] | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

t.test('json: a large message is read like a small one', async (t) => {
  const padding = ' '.repeat(300_000)
  await fc.assert(
    fc.asyncProperty(text, fc.boolean(), async (json, inFront) => {
      const message = (pad: string) =>
        Buffer.from(`{"jsonrpc":"2.0","id":7,${inFront ? pad : ''}"result":${json}${inFront ? '' : pad}}`)
      const small = await outcome(() => scanMessage(message('')))
      const large = await outcome(() => readServerMessage(message(padding)))
      return small === large
    }),
    { numRuns: CASES, examples: [['{"f":"", "f":{} }', false]] },
  )
  t.pass('all alike')
})

t.test('json: a large result is converted for sessions like a small one', async (t) => {
  const mark = '"_meta":{"io.modelcontextprotocol/serverInfo":{},"mine":1}'
  const bodies = [
    `"content":[{"type":"text","text":"a",${mark}},{"type":"text","text":"\\u0041"}],${mark}`,
    '"content":[],"structuredContent":[1,2]',
    '"content":[],"structuredContent":{"a":1},"resultType":"complete","ttlMs":1',
    '"contents":[{"uri":"a","text":"b","_meta":{"io.modelcontextprotocol/x":1}}]',
    '"content":[{"type":"resource","resource":{"uri":"a","_meta":{"io.modelcontextprotocol\\/x":1}}}]',
  ]
  for (const body of bodies) {
    const padded = (pad: string) => Buffer.from(`{${body},"pad":"${pad}"}`)
    const pad = 'x'.repeat(300_000)
    const small = sessionResult(padded('')).toString()
    const large = (await inTurns(sessionResultInTurns(padded(pad)))).toString()
    t.equal(large.replace(pad, ''), small)
  }
})

async function outcome(read: () => unknown): Promise<string> {
  try {
    const { kind, id, result } = (await read()) as { kind: string; id: string; result: Buffer | undefined }
    // In a large message, line breaks are replaced by spaces.
    return `${kind} ${id} ${result?.toString().replaceAll(/[\r\n]/g, ' ')}`
  } catch {
    return 'refused'
  }
}
