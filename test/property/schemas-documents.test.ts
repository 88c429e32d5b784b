/**
 * Tests documents: defaults are set once and never overwrite a value, and the validators do not throw for any document.
 */
import * as fc from 'fast-check'
import t from 'tap'
import {
  canonicalJson,
  hashOf,
  kinds,
  shortName,
  validateManifest,
  withDefaults,
} from '../../schemas/index.ts'
import { allTables } from '../unit/schemas/tables/index.ts'
import { absent, type Doc, withValue } from '../unit/schemas/tables/table.ts'

/** Valid documents: the base of a table with some of its valid values. */
const valid = fc.constantFrom(...allTables).chain((table) => {
  const choices = table.rows.flatMap((row) =>
    (row.good ?? []).filter((value) => value !== absent).map((value) => ({ at: row.at, value })),
  )
  const base: fc.Arbitrary<Doc> = fc.constant(table.base)
  return choices.length === 0
    ? base
    : fc.constantFrom(...choices).map(({ at, value }) => withValue(table.base, at, value))
})

await t.test('withDefaults: a second call changes nothing, and valid documents stay valid', async (t) => {
  fc.assert(
    fc.property(valid, (doc) => {
      const once = withDefaults(doc)
      t.same(withDefaults(once), once)
      t.same(validateManifest(once), [])
      return true
    }),
    { numRuns: 500 },
  )
})

await t.test('withDefaults: keeps every given value and does not modify its argument', async (t) => {
  const contains = (whole: unknown, part: unknown): boolean => {
    if (typeof part !== 'object' || part === null) return Object.is(whole, part)
    if (typeof whole !== 'object' || whole === null) return false
    const members = new Map<string, unknown>(Object.entries(whole))
    return Object.entries(part).every(([name, value]) => contains(members.get(name), value))
  }
  fc.assert(
    fc.property(valid, (doc) => {
      const before = structuredClone(doc)
      const filled = withDefaults(doc)
      t.same(doc, before)
      return contains(filled, doc)
    }),
    { numRuns: 300 },
  )
})

await t.test('validateManifest: does not throw for any document', async (t) => {
  const kind = fc.constantFrom(...kinds.map(({ kind }) => kind))
  fc.assert(
    fc.property(kind, fc.jsonValue(), fc.jsonValue(), (kind, metadata, spec) => {
      const violations = validateManifest({ apiVersion: 'gatehouse.dev/v1beta1', kind, metadata, spec })
      return violations.every(({ path, message }) => typeof path === 'string' && message.length > 0)
    }),
    { numRuns: 500 },
  )
  // Random values deep inside valid documents reach the rules.
  const places = allTables.flatMap(({ base, rows }) => rows.map(({ at }) => ({ base, at })))
  fc.assert(
    fc.property(fc.constantFrom(...places), fc.jsonValue(), ({ base, at }, value) => {
      const text: unknown = JSON.parse(JSON.stringify(value))
      const doc = withValue(base, at, JSON.parse(JSON.stringify(text)))
      return Array.isArray(validateManifest(doc))
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

await t.test('canonicalJson: returns JSON with the same meaning for any order of keys', async (t) => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, member]) => [name, shuffled(member)]),
    )
  }
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      t.same(JSON.parse(canonicalJson(plain)), plain)
      return hashOf(plain) === hashOf(shuffled(plain))
    }),
  )
})

await t.test(
  'shortName: stays within the limit, keeps DNS labels valid and different names different',
  async (t) => {
    const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$/)
    fc.assert(
      fc.property(label, label, fc.integer({ min: 10, max: 63 }), (a, b, max) => {
        const [one, two] = [shortName(a, max), shortName(b, max)]
        return one.length <= max && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(one) && (a === b) === (one === two)
      }),
      { numRuns: 1000 },
    )
    t.pass()
  },
)
