/**
 * Prevents accidental changes of names that users, dashboards and scripts rely on: error codes, reasons, metrics,
 * events, flags, environment variables and fields of kinds must match test/fixtures/public-names.txt.
 *
 *   node test/unit/public-names.test.ts --update    rewrites the file; commit it together with your change
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { publicNames } from '../helpers/source/public-names.ts'

const file = resolve(import.meta.dirname, '../fixtures/public-names.txt')
const howToUpdate = 'if this is intended, run: node test/unit/public-names.test.ts --update'

t.test('public names: the code declares the names in the checked-in file', async (t) => {
  const declared = await publicNames()
  if (process.argv.includes('--update')) writeFileSync(file, `${declared.join('\n')}\n`)
  const recorded = readFileSync(file, 'utf8').trimEnd().split('\n')
  t.same(without(declared, recorded), [], `added names; ${howToUpdate}`)
  t.same(without(recorded, declared), [], `removed names; ${howToUpdate}`)
  for (const kind of [
    'error',
    'reason',
    'condition',
    'metric',
    'event',
    'audit event',
    'flag',
    'variable',
    'field',
  ])
    t.ok(
      recorded.filter((line) => line.startsWith(`${kind} `)).length > 10,
      `the file contains names of kind ${kind}`,
    )
})

function without(lines: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others)
  return lines.filter((line) => !known.has(line))
}
