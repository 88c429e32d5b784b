/**
 * Compares the rules that are compiled to JavaScript with the CEL library on the text of the rule: the same result, or
 * a failure in both. Values consist of the names and literals of each rule.
 */
import { inspect } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { compiledRule } from '../../schemas/generate/rules.ts'
import { rules } from '../../schemas/generated/rules.ts'
import { compileCel } from '../../schemas/validation/cel.ts'

const cases = Number(process.env['FC_RUNS'] ?? 300)
t.setTimeout(900_000)

/** Characters that RE2 and JavaScript could interpret differently. */
const oddTexts = ['', 'ſ', 'K', 'a\nb', '\u2028', '..', '/../', 'x/..', 'http://[::1]:8/', 'HOST', '[]', ']']

t.test('compiled rules: return the same result as the CEL library', async (t) => {
  for (const [rule, compiled] of Object.entries(rules)) {
    const library = compileCel(rule)
    fc.assert(
      fc.property(
        valueFor(rule),
        (self) => outcome(() => compiled(self)) === outcome(() => library({ self })),
      ),
      { numRuns: cases },
    )
    t.pass(rule)
  }
  t.ok(Object.keys(rules).length > 100)
})

t.test('compiled rules: compare pairs of types like the CEL library', async (t) => {
  const values = [false, true, 1n, 2n, 1, 1.5, 'a', 'b', [1n], new Map([['a', 1n]])]
  const rule = 'self.minReplicas <= self.maxReplicas'
  const [compiled, library] = [rules[rule], compileCel(rule)]
  for (const minReplicas of values) {
    for (const maxReplicas of values) {
      const self = new Map<string, unknown>(Object.entries({ minReplicas, maxReplicas }))
      t.equal(
        outcome(() => compiled?.(self)),
        outcome(() => library({ self })),
        `${inspect(minReplicas)} <= ${inspect(maxReplicas)}`,
      )
    }
  }
})

t.test('compiled rules: the cases include both verdicts and failures', async (t) => {
  const seen = new Set<string>()
  for (const [rule, compiled] of Object.entries(rules)) {
    for (const self of fc.sample(valueFor(rule), { numRuns: 50, seed: 1 }))
      seen.add(outcome(() => compiled(self)))
  }
  t.same([...seen].sort(), ['failed', 'false', 'true'])
})

t.test('compiled rules: unsupported expressions stop the generation', async (t) => {
  for (const rule of [
    'self.map(x, x) == []',
    'self.exists_one(x, x)',
    "self.matches('a\\\\d')",
    "self.matches('(a+)+')",
    'self.matches(self)',
    'self ? true : false',
    'self.x + 1 == 2',
    'self.',
  ])
    t.throws(() => compiledRule(rule), /cannot be compiled/, rule)
})

function valueFor(rule: string): fc.Arbitrary<unknown> {
  const names = [...new Set(rule.match(/[A-Za-z_][A-Za-z0-9_]*/g))]
  const literals = [...rule.matchAll(/'([^']*)'/g)].flatMap(([, text = '']) => [text, ...words(text)])
  const leaf = fc.oneof(
    fc.constantFrom(...literals, ...oddTexts),
    fc.string({ maxLength: 6 }),
    fc.constantFrom('1s', '0s', '10s', '1.5h', '61m', 'x'),
    fc.boolean(),
    fc.constantFrom(0n, 1n, -1n, 3n, 0, 1, 0.5, 1.5, 2.5, -1),
  )
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'large' },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }),
      fc
        .uniqueArray(fc.tuple(fc.constantFrom(...names), tie('value')), {
          selector: ([name]) => name,
          maxLength: names.length,
        })
        .map((entries) => new Map(entries)),
    ),
  }))
  return value
}

/** Literal characters of a pattern, without its syntax. */
function words(pattern: string): string[] {
  return pattern.split(/[^A-Za-z0-9.:/-]+/).filter((word) => word !== '')
}

function outcome(evaluate: () => unknown): string {
  try {
    return String(evaluate())
  } catch {
    return 'failed'
  }
}
