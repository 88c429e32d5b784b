/** Compares observed values with a table in test/fixtures/vmcp. With `--update`, writes the table first. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'

const folder = resolve(import.meta.dirname, '../../../fixtures/vmcp')

/** Observed values by the title of their cell. */
export type Cells = Readonly<Record<string, unknown>>

export function compareCells(t: Test, file: string, observed: Cells): void {
  const path = join(folder, file)
  const cells = JSON.parse(JSON.stringify(observed)) as Cells
  if (process.argv.includes('--update')) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, `${JSON.stringify(cells, undefined, 2)}\n`)
  }
  const expected = JSON.parse(readFileSync(path, 'utf8')) as Cells
  t.strictSame(Object.keys(cells), Object.keys(expected), 'the table contains these cells')
  for (const [title, cell] of Object.entries(cells)) t.strictSame(cell, expected[title], title)
}
