/**
 * Tests aliases of long tool names: they are short, different from every name that clients see, and independent of
 * other tools and of the order.
 *
 * `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  type Aliases,
  aliasesOf,
  mayBeAlias,
  type NamedTool,
} from '../../../runtime/vmcp/catalog/names/aliases.ts'

t.setTimeout(600_000)

const CASES = Number(process.env['FC_RUNS'] ?? 300)
const LIMIT = 40

/** Names with a common prefix, with characters of one and two code units. */
const name = fc
  .tuple(
    fc.constantFrom('a_', 'files_read_the_whole_of_the_', ''),
    fc.string({ unit: 'grapheme', maxLength: 60 }),
  )
  .map(([start, rest]) => `${start}${rest}`)
const tools = fc
  .uniqueArray(fc.tuple(name, fc.constantFrom('a', 'b', '')), { selector: ([key]) => key, maxLength: 40 })
  .map((all) => all.map(([key, backend]): NamedTool => ({ key, backend, original: key })))
const limit = fc.constantFrom(32, LIMIT, 64, 128)

function shownNames(all: readonly NamedTool[], { aliasByName }: Aliases): string[] {
  return all.map(({ key }) => aliasByName.get(key) ?? key)
}

function check(all: readonly NamedTool[], aliases: Aliases, most: number): boolean {
  const shown = shownNames(all, aliases)
  if (new Set(shown).size !== shown.length || shown.some((one) => one.length > most)) return false
  return [...aliases.aliasByName].every(
    ([key, alias]) =>
      aliases.nameByAlias.get(alias) === key && mayBeAlias(alias, most) && alias.isWellFormed(),
  )
}

t.test('every name is short enough and unique, and maps back to its tool', (t) => {
  fc.assert(
    fc.property(tools, limit, (all, most) => check(all, aliasesOf(all, most), most)),
    { numRuns: CASES },
  )
  t.end()
})

t.test('order and other tools do not change an alias', (t) => {
  fc.assert(
    fc.property(tools, tools, (all, more) => {
      const { aliasByName } = aliasesOf(all, LIMIT)
      const reversed = aliasesOf(all.toReversed(), LIMIT)
      if (
        reversed.aliasByName.size !== aliasByName.size ||
        [...aliasByName].some(([key, alias]) => reversed.aliasByName.get(key) !== alias)
      )
        return false
      const keys = new Set(all.map(({ key }) => key))
      const among = aliasesOf([...all, ...more.filter(({ key }) => !keys.has(key))], LIMIT)
      return [...aliasByName].every(([key, alias]) => among.aliasByName.get(key) === alias)
    }),
    { numRuns: CASES },
  )
  t.end()
})

t.test("a tool with the name of another tool's alias does not receive its calls", (t) => {
  fc.assert(
    fc.property(tools, (all) => {
      const { aliasByName } = aliasesOf(all, LIMIT)
      const taken = new Set(all.map(({ key }) => key))
      const impostors = [...aliasByName.values()]
        .filter((key) => !taken.has(key))
        .map((key): NamedTool => ({ key, backend: 'impostor', original: key }))
      const among = aliasesOf([...impostors, ...all], LIMIT)
      return (
        check([...impostors, ...all], among, LIMIT) &&
        [...aliasByName].every(([key, alias]) => among.aliasByName.get(key) === alias) &&
        impostors.every(({ key }) => among.aliasByName.has(key))
      )
    }),
    { numRuns: CASES },
  )
  t.end()
})

t.test('tools with equal hashes get different aliases', (t) => {
  const few = (_: NamedTool, attempt: number): string =>
    `aaaaaaaaa${'abcdefghijklmnopqrstuvwxyz234567'[attempt % 32]}`
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), (count) => {
      const all = Array.from({ length: count }, (_, i): NamedTool => {
        const key = `${'n'.repeat(LIMIT)}${i}`
        return { key, backend: 'a', original: key }
      })
      return check(all, aliasesOf(all, LIMIT, few), LIMIT)
    }),
    { numRuns: CASES },
  )
  t.end()
})

t.test('the same tool has another alias at another backend, and no alias without a limit', (t) => {
  const key = 'n'.repeat(100)
  const at = (backend: string): string | undefined =>
    aliasesOf([{ key, backend, original: key }], 64).aliasByName.get(key)
  t.not(at('a'), at('b'))
  t.equal(at('a'), 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_4kzzxl24iv', 'in every release')
  t.equal(aliasesOf([{ key, backend: 'a', original: key }], 0).aliasByName.size, 0)
  t.end()
})
