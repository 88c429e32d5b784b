/**
 * Prints how many requirements exist, are proven and are open.
 *
 *   node test/requirements/print.ts [--open] [--doc N] [--json]   --open lists the open rows
 *   node test/requirements/print.ts --write-open                  rewrites open.ts from the tests
 *
 * `--write-open` takes what is proven out of the list. It adds an id only when the id is new in the tables, so that a
 * lost proof stays visible: the gate fails until the test is back, or the id is put back by hand.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { citations, open, type Requirement, requirements, unproven } from './index.ts'

const { values } = parseArgs({
  options: {
    open: { type: 'boolean', default: false },
    doc: { type: 'string' },
    json: { type: 'boolean', default: false },
    'write-open': { type: 'boolean', default: false },
  },
})

const selected = requirements.filter((row) => values.doc === undefined || String(row.doc) === values.doc)
const cited = citations()
const openIds = new Set(unproven(requirements, cited))

if (values['write-open']) writeOpen()
else if (values.json) console.log(JSON.stringify(report(), null, 2))
else printText()

function report() {
  return {
    total: selected.length,
    proven: selected.filter((row) => !openIds.has(row.id)).length,
    open: selected.filter((row) => openIds.has(row.id)).length,
    rows: selected
      .filter((row) => !values.open || openIds.has(row.id))
      .map((row) => ({ ...row, proof: proofs(row) })),
  }
}

function proofs(row: Requirement): readonly string[] {
  return [...new Set(cited.filter((citation) => citation.id === row.id).map((citation) => citation.file))]
}

function printText(): void {
  if (values.open) {
    for (const row of selected.filter((row) => openIds.has(row.id))) console.log(`${row.id}  ${row.says}`)
  }
  for (const doc of [1, 2, 3]) {
    const all = selected.filter((row) => row.doc === doc)
    const left = all.filter((row) => openIds.has(row.id)).length
    if (all.length > 0)
      console.log(`document ${doc}: ${all.length} rows, ${all.length - left} proven, ${left} open`)
  }
}

function writeOpen(): void {
  const before = new Set<string>(open)
  const committed = committedIds()
  const kept = [...openIds].filter((id) => before.has(id) || !committed.has(id))
  const lost = [...openIds].filter((id) => !kept.includes(id))
  const body = kept.length > 0 ? `\n${kept.map((id) => `  '${id}',`).join('\n')}\n` : ''
  const header = `/** Requirements that no test proves yet. Written by \`node test/requirements/print.ts --write-open\`; only shrinks. */\n`
  writeFileSync(
    join(import.meta.dirname, 'open.ts'),
    `${header}export const open: readonly string[] = [${body}]\n`,
  )
  console.log(`${kept.length} open`)
  for (const id of lost) console.log(`proof lost, not added: ${id}`)
}

/** Ids whose text stands in the last commit's tables; a new row is not among them. */
function committedIds(): ReadonlySet<string> {
  const root = join(import.meta.dirname, '../..')
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const files = git('ls-tree', '--name-only', 'HEAD', 'test/requirements/').split('\n')
    const tables = files
      .filter((file) => /\/spec\d.*\.ts$/.test(file))
      .map((file) => git('show', `HEAD:${file}`))
    return new Set(requirements.filter((row) => tables.some((text) => has(text, row))).map((row) => row.id))
  } catch {
    return new Set()
  }
}

function has(table: string, row: Requirement): boolean {
  return table.includes(`rows(${row.doc},`) && table.includes(`'${row.id.slice(2)}'`)
}
