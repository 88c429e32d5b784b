/**
 * Compares the replacements of guardrails in JSON with those of a JSON parser: the masked bytes represent the value
 * with each match in its strings replaced, and bytes outside of the matches stay the same.
 *
 * `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import fc from 'fast-check'
import t from 'tap'
import { scanned, resultRules } from '../../helpers/vmcp/guardrails/rules.ts'

t.setTimeout(900_000)

const CASES = Number(process.env['FC_RUNS'] ?? 300)
const rules = resultRules({ expressions: ['EMP-[0-9]{4}'] })
const found = /EMP-[0-9]{4}/gv

const piece = fc.oneof(
  fc.constantFrom(
    'EMP-1234',
    'EMP-12',
    'EEMP-0000',
    ' ',
    '"',
    '\\',
    '\n',
    '/',
    '😀',
    'é',
    '\u0000',
    '\u2028',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.string({ maxLength: 3 }).filter((name) => name !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
})).value

/** Writes the same value with blanks, and with other escapes in its strings if `escapes` is set. */
function written(json: unknown, escapes: () => boolean, blank: string): string {
  if (typeof json === 'string') {
    const plain = JSON.stringify(json)
    if (!escapes()) return plain
    return `"${[...plain.slice(1, -1).matchAll(/\\u[0-9a-f]{4}|\\.|[^]/gu)]
      .map(([one]) =>
        one.length > 1 || !escapes() ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
      .join('')}"`
  }
  if (Array.isArray(json))
    return `[${blank}${json.map((one) => written(one, escapes, blank)).join(`${blank},`)}]`
  if (typeof json === 'object' && json !== null)
    return `{${Object.entries(json)
      .map(([name, one]) => `${blank}${JSON.stringify(name)}:${written(one, escapes, blank)}`)
      .join(',')}${blank}}`
  return JSON.stringify(json)
}

/** Returns the expected value, computed on the parsed JSON. */
function replaced(json: unknown): unknown {
  if (typeof json === 'string') return json.replaceAll(found, '[redacted:rule0]')
  if (Array.isArray(json)) return json.map(replaced)
  if (typeof json === 'object' && json !== null)
    return Object.fromEntries(Object.entries(json).map(([name, one]) => [name, replaced(one)]))
  return json
}

t.test('guardrails: masked JSON represents the value with its matches replaced', async (t) => {
  fc.assert(
    fc.property(
      value,
      fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
      fc.constantFrom('', ' \n'),
      (json, how, blank) => {
        let next = 0
        const raw = written(json, () => how[next++ % how.length] === true, blank)
        const { bytes, findings } = scanned(raw, rules)
        const matches = [...JSON.stringify(json).matchAll(/EMP-[0-9]{4}/g)].length
        if ((findings[0]?.count ?? 0) !== matches) return false
        if (matches === 0) return bytes.toString() === raw
        return JSON.stringify(JSON.parse(bytes.toString())) === JSON.stringify(replaced(JSON.parse(raw)))
      },
    ),
    { numRuns: CASES },
  )
  t.pass()
})

t.test('guardrails: bytes outside of the matches do not change', async (t) => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 5 }), (texts) => {
      const raw = `[ ${texts.map((one) => JSON.stringify(one)).join(' , ')} ]`
      const wanted = raw.replaceAll(found, '[redacted:rule0]')
      return scanned(raw, rules).bytes.toString() === wanted
    }),
    { numRuns: CASES },
  )
  t.pass()
})
