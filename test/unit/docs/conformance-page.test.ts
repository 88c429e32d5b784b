/** The conformance page shows the recorded results, and its records cover every scenario that the suite requires. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { conformancePage, readExpected } from '../../conformance/page.ts'
import { requiredScenarios } from '../../conformance/page-tables.ts'
import { readRecords } from '../../helpers/conformance/record.ts'

const records = readRecords()
const runs = [...records.values()].flatMap((record) => record.runs)
const revisions = ['2025-11-25', '2026-07-28']

t.test('the page is current', async (t) => {
  const path = join(import.meta.dirname, '../../../docs/evidence/conformance.md')
  t.equal(readFileSync(path, 'utf8'), conformancePage(), 'run make schemas')
})

t.test('each server run of a revision contains every required scenario', async (t) => {
  const titles = runs.filter(({ mode, revision }) => mode === 'server' && revision !== undefined)
  t.equal(titles.length, 8)
  for (const { title, revision = '', scenarios } of titles) {
    const missing = requiredScenarios(revision, 'server').filter((name) => !(name in scenarios))
    t.same(missing, [], `${title}, ${revision}`)
  }
})

t.test('the client runs together contain every required scenario of each revision', async (t) => {
  for (const revision of revisions) {
    const ran = runs.filter((run) => run.mode === 'client' && run.revision === revision)
    const names = new Set(ran.flatMap(({ scenarios }) => Object.keys(scenarios)))
    const missing = requiredScenarios(revision, 'client').filter((name) => !names.has(name))
    t.same(missing, [], revision)
  }
})

t.test('required checks that fail or warn are the listed ones; otherwise, one check warns', async (t) => {
  const listed = readExpected().map(({ scenario, check }) => `${scenario}:${check}`)
  for (const { title, mode, revision, scenarios } of runs) {
    if (mode === 'authorization' || revision === undefined) continue
    const found = requiredScenarios(revision, mode).flatMap((scenario) =>
      (scenarios[scenario] ?? []).map((check) => `${scenario}:${check}`),
    )
    const isOtherEra = title === 'virtual server, backend of 2025-11-25' && revision === '2026-07-28'
    const warning = 'input-required-result-ignore-extra-params:sep-2322-ignore-unexpected-params (warning)'
    if (isOtherEra) t.same(found.map((id) => id.replace(' (warning)', '')).toSorted(), listed.toSorted())
    else
      t.same(
        found.filter((id) => id !== warning),
        [],
        `${title}, ${revision}`,
      )
  }
  for (const { check, reason } of readExpected()) t.match(reason, /\w{3}.*\.$/, check)
})

t.test('each cell of the matrix has passed operations', async (t) => {
  const cells = [...records.values()].flatMap((record) => record.cells)
  t.ok(cells.length > 0)
  for (const { client, server, operations } of cells)
    t.not(operations.length, 0, `${client.name}, ${client.transport}, ${server.name}`)
})
