/** The check of the requirements manifest: tables, citations in the tests and the open list must agree. */
import t from 'tap'
import { citations, citedIds, disagreements, open, requirements } from '../requirements/index.ts'
import { pages } from '../requirements/sections.ts'

await t.test('requirements: ids are unique, start with their document number and have a text', async (t) => {
  t.ok(requirements.length > 400, 'the tables were read')
  const seen = new Set<string>()
  for (const row of requirements) {
    if (seen.has(row.id)) t.fail(`${row.id} appears twice`)
    seen.add(row.id)
    t.ok(row.id.startsWith(`${row.doc}.`) && row.says.length > 2, row.id)
  }
})

await t.test(
  'requirements: every cited id exists, every id is cited or open, and no cited id is open',
  async (t) => {
    const { unknown, missing, stale } = disagreements(requirements, citations(), open)
    for (const { id, file } of unknown) t.fail(`${file} cites ${id}, which does not exist`)
    for (const id of missing) t.fail(`${id} is neither proven nor in test/requirements/open.ts`)
    for (const id of stale) t.fail(`${id} is in open.ts but proven; run print.ts --write-open`)
  },
)

await t.test('requirements: the open list is sorted and has no duplicates', async (t) => {
  t.same(open, [...new Set(open)].sort())
})

await t.test('requirements: the check reports each kind of disagreement', async (t) => {
  const row = (id: string) => ({ id, doc: 1 as const, section: 's', says: 'something' })
  const all = [row('1.a'), row('1.b'), row('1.c')]
  const found = disagreements(
    all,
    [
      { id: '1.a', file: 'x' },
      { id: '1.z', file: 'y' },
    ],
    ['1.a', '1.b', '1.gone'],
  )
  t.same(found.unknown, [{ id: '1.z', file: 'y' }])
  t.same(found.missing, ['1.c'])
  t.same(found.stale, ['1.a', '1.gone'])
})

await t.test(
  'requirements: citations are read from calls over several lines and with both quotes',
  async (t) => {
    const call = 'proves'
    t.same(citedIds(`${call}(\n  '1.a',\n  "2.b",\n)\n${call}('3.c'); other('4.d')`), ['1.a', '2.b', '3.c'])
  },
)

await t.test(
  'specification: every section of the tables has a heading on its page, and no heading is empty',
  async (t) => {
    for (const page of pages) {
      const rows = requirements.filter((row) => row.doc === page.doc)
      t.same(new Set(rows.map((row) => row.section)), new Set(Object.keys(page.sections)), page.file)
    }
  },
)
