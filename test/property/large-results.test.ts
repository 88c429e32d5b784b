/**
 * Compares a result that is split while it arrives with the same result read whole: both are equal for clients of both
 * eras and any chunks.
 *
 * `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  atOnce,
  canonicalText,
  completeResult,
  type Era,
  type Message,
  otherMembers,
  ResultSplitter,
  scanMessage,
  sessionResult,
} from '../../runtime/mcp/index.ts'

const CASES = Number(process.env['FC_RUNS'] ?? 300)

const meta = fc.dictionary(
  fc.constantFrom('io.modelcontextprotocol/x', 'io.modelcontextprotocol/related-task', 'a/b', '\u00e9'),
  fc.jsonValue({ maxDepth: 1 }),
)
/** Texts that are longer than the part that is read byte by byte, with all characters that end the faster path. */
const words = fc
  .array(fc.constantFrom('x'.repeat(90), 'é', '😀', '"', '\\', '\n', '{', '\u0001', ' '))
  .map((parts) => parts.join(''))
const content = fc.record(
  {
    type: fc.constant('text'),
    text: words,
    _meta: meta,
    resource: fc.record({ uri: words, _meta: meta }, { requiredKeys: [] }),
    content: fc.array(fc.record({ _meta: meta, n: fc.double() }, { requiredKeys: [] }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
)
const contents = fc.array(fc.oneof(content, content, fc.jsonValue({ maxDepth: 1 })), { maxLength: 4 })
const result = fc.record(
  {
    content: fc.oneof(contents, contents, fc.jsonValue({ maxDepth: 1 })),
    contents,
    messages: contents,
    structuredContent: fc.oneof(fc.dictionary(words, fc.jsonValue()), fc.jsonValue({ maxDepth: 2 })),
    _meta: fc.oneof(meta, fc.constant(1)),
    isError: fc.boolean(),
    ttlMs: fc.nat(),
    cacheScope: fc.constant('public'),
    other: fc.jsonValue(),
  },
  { requiredKeys: [] },
)
const change = fc.option(
  fc.tuple(fc.nat(), fc.constantFrom(...'[]{},:"\\ u0-.eEtfn\u0001\xff'.split(''), '')),
  { freq: 1 },
)

interface Case {
  readonly text: Buffer
  readonly sizes: readonly number[]
  readonly largeBytes: number
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    result,
    order: fc.shuffledSubarray(['jsonrpc', 'id', 'result', 'x'], { minLength: 3 }),
    blank: fc.constantFrom('', ' ', '\n  '),
    change,
    sizes: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 }),
    largeBytes: fc.constantFrom(0, 20, 200),
  })
  .map(({ result, order, blank, change, sizes, largeBytes }) => {
    const members: Readonly<Record<string, unknown>> = { jsonrpc: '2.0', id: 7, result, x: [1, { y: 'id' }] }
    const message = Object.fromEntries(order.map((name) => [name, members[name]]))
    const text = Buffer.from(JSON.stringify(message, undefined, blank === '' ? undefined : blank.length))
    if (!change) return { text, sizes, largeBytes }
    const at = change[0] % text.length
    const changed = [text.subarray(0, at), Buffer.from(change[1], 'latin1'), text.subarray(at + 1)]
    return { text: Buffer.concat(changed), sizes, largeBytes }
  })

function* chunksOf({ text, sizes }: Case): Generator<Buffer> {
  for (let at = 0, n = 0; at < text.length; n++) {
    const size = sizes[n % sizes.length] ?? 1
    yield text.subarray(at, at + size)
    at += size
  }
}

const forClient: Readonly<Record<Era, (result: Buffer) => Buffer>> = {
  session: sessionResult,
  stateless: (result) => completeResult('resources/read', result, '{"name":"x"}'),
}

/**
 * Returns the result as the client receives it in parts, or undefined when it must be read whole. Throws when it is
 * incomplete.
 */
function inParts(given: Case, era: Era): Buffer | undefined {
  const out: Buffer[] = [Buffer.from('{')]
  const splitter = new ResultSplitter({
    id: '7',
    replaces: false,
    largeBytes: given.largeBytes,
    passage: {
      era,
      begin: () => true,
      write: (parts) => {
        out.push(Buffer.concat(parts))
        return undefined
      },
    },
  })
  for (const chunk of chunksOf(given)) void splitter.push(chunk)
  const message: Message | undefined = splitter.end()
  if (!message?.result) return undefined
  out.push(...otherMembers(forClient[era](message.result), message.passed?.names ?? []), Buffer.from('}'))
  return Buffer.concat(out)
}

function whole({ text }: Case, era: Era): Buffer | undefined {
  try {
    const message = scanMessage(text)
    return message.result && message.id === '7' ? forClient[era](message.result) : undefined
  } catch {
    return undefined
  }
}

for (const era of ['session', 'stateless'] as const) {
  t.test(`large results: the parts equal the whole result, for ${era} clients`, async (t) => {
    let passed = 0
    fc.assert(
      fc.property(cases, (given) => {
        const expected = whole(given, era)
        let parts: Buffer | undefined
        try {
          parts = inParts(given, era)
        } catch {
          return expected === undefined
        }
        if (!parts) return true
        passed++
        return expected !== undefined && atOnce(canonicalText(parts)) === atOnce(canonicalText(expected))
      }),
      { numRuns: CASES },
    )
    t.ok(passed > CASES / 10, `${passed} of ${CASES} were sent in parts`)
  })
}

t.test('large results: unchanged values keep their bytes', async (t) => {
  const value = '{"l" : [1.0,2e400,  123456789012345678901]}'
  const text = Buffer.from(`{"result":{"structuredContent":${value}},"jsonrpc":"2.0","id":7}`)
  const parts = inParts({ text, sizes: [3], largeBytes: 4 }, 'session')
  t.equal(parts?.toString(), `{"structuredContent":${value}}`)
})
