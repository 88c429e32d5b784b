/** Checks every row of a table with the validators. */
import type { Test } from 'tap'
import { isKindName, type Violation, validateManifest, withDefaults } from '../../../../schemas/index.ts'
import { validateStatus } from '../../../helpers/hooks/status.ts'
import { absent, type Doc, type Json, type Row, type Table, valueAt, withValue } from './table.ts'

export async function checkTables(t: Test, tables: readonly Table[]): Promise<void> {
  for (const table of tables) {
    await t.test(`${table.name}: every row holds`, async (t) => {
      t.same(violationsOf(table.base), [], 'the document of the table is valid')
      for (const row of table.rows) checkRow(t, table, row)
    })
  }
}

/** Returns the problems of a document, including its status if it has one, as the hooks do. */
export function violationsOf(doc: Doc): readonly Violation[] {
  const { kind, status } = doc
  const ofStatus = 'status' in doc && isKindName(kind) ? validateStatus(kind, status) : []
  return [...validateManifest(doc), ...ofStatus]
}

function checkRow(t: Test, table: Table, row: Row): void {
  const problems = (value: Json | typeof absent) => violationsOf(withValue(table.base, row.at, value))
  const without = withValue(table.base, row.at, absentUnlessItem(row))
  if (row.required) t.ok(isAbout(violationsOf(without), row), `${row.at}: is required`)
  if (row.default !== undefined) {
    const filled = valueAt(withDefaults(without), row.at)
    t.same(filled, row.default, `${row.at}: default ${JSON.stringify(row.default)}`)
  }
  for (const value of row.good ?? []) {
    t.same(problems(value), [], `${row.at}: accepts ${text(value)}`)
  }
  for (const value of row.bad ?? []) {
    const found = problems(value)
    if (!isAbout(found, row))
      t.fail(`${row.at}: must refuse ${text(value)}`, { found, failure: row.failure ?? row.at })
    else t.pass(`${row.at}: refuses ${text(value)}`)
  }
}

/** A list item cannot be absent, so its row is checked with null. */
function absentUnlessItem(row: Row): typeof absent | null {
  return row.at.endsWith(']') && !row.at.endsWith('"]') ? null : absent
}

function isAbout(violations: readonly Violation[], row: Row): boolean {
  if (row.failure === '*') return violations.length > 0
  const path = row.failure ?? row.at
  return violations.some((violation) => violation.path === path)
}

function text(value: Json | typeof absent): string {
  const json = value === absent ? 'its absence' : JSON.stringify(value)
  return json.length > 60 ? `${json.slice(0, 57)}...` : json
}

/** Returns the ids of the requirements that the tables name. */
export function idsOf(tables: readonly Table[]): ReadonlySet<string> {
  return new Set(tables.flatMap(({ rows }) => rows.map(({ id }) => id)).filter((id) => id !== ''))
}
