/** Checks the map of removed tests: the removed tests are gone, and the tests that replace them exist. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { replaced } from '../requirements/replaced.ts'

const testRoot = resolve(import.meta.dirname, '..')

/** True if the file contains a test with this title. */
function hasTest(file: string, title: string): boolean {
  const path = resolve(testRoot, file)
  if (!existsSync(path)) return false
  const source = readFileSync(path, 'utf8')
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`))
}

await t.test('replaced: removed tests do not exist, and every replacement does', async (t) => {
  for (const { removed, by, note } of replaced) {
    t.ok(removed.titles.length > 0, `${removed.file} has titles`)
    for (const title of removed.titles) t.notOk(hasTest(removed.file, title), `removed: ${title}`)
    for (const { file, title } of by) t.ok(hasTest(file, title), `${file}: ${title}`)
    t.ok(by.length > 0 || note !== undefined, `${removed.file} has a replacement or a note`)
  }
})

await t.test('replaced: no removed test is listed twice', async (t) => {
  const rows = replaced.flatMap(({ removed }) => removed.titles.map((title) => `${removed.file} ${title}`))
  t.same(rows, [...new Set(rows)])
})
