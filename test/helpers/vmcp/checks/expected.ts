/** Compares observed values with a table in test/fixtures/vmcp. With `--update`, writes the table first. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'

const folder = resolve(import.meta.dirname, '../../../fixtures/vmcp')

/** Observed values by the title of their cell. */
export type Cells = Readonly<Record<string, unknown>>

export function isUpdate(): boolean {
  return process.argv.includes('--update')
}

/** With `isPart`, the table also contains cells that were not observed. */
export function compareCells(
  t: Test,
  file: string,
  observed: Cells,
  { isPart = false }: { readonly isPart?: boolean } = {},
): void {
  const path = join(folder, file)
  const cells = JSON.parse(JSON.stringify(observed)) as Cells
  if (isUpdate()) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, `${JSON.stringify(cells, undefined, 2)}\n`)
  }
  const expected = JSON.parse(readFileSync(path, 'utf8')) as Cells
  const titles = Object.keys(expected).filter((title) => !isPart || title in cells)
  t.strictSame(Object.keys(cells), titles, 'the table contains these cells')
  for (const [title, cell] of Object.entries(cells)) t.strictSame(cell, expected[title], title)
}
