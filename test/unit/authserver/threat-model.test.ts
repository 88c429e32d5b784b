/** docs/evidence/security.md names a test for every defense. Each test must exist under the given name. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/evidence/security.md'), 'utf8')

/** `folder/file`, optionally followed by a part of a title in quotes. */
const named = [
  ...page.matchAll(/`((?:behaviour|e2e|interop|property|security|unit)\/[\w./-]+)`(?: "([^"]+)")?/g),
].map(([, file = '', title]) => ({ file, title }))

t.test('threat model: every named test exists', async (t) => {
  t.ok(named.length > 40, `${named.length} are named`)
  for (const { file, title } of named) {
    const path = join(root, 'test', `${file}.test.ts`)
    if (!t.ok(existsSync(path), file) || title === undefined) continue
    t.ok(readFileSync(path, 'utf8').includes(title), `${file} has a test "${title}"`)
  }
})

t.test('threat model: every attack of RFC 9700 has a row, and every row a test', async (t) => {
  const tests = ['authserver/rfc9700', 'authserver/rfc9700-pages']
    .map((name) => readFileSync(join(root, `test/security/${name}.test.ts`), 'utf8'))
    .join('\n')
  for (let attack = 1; attack <= 17; attack++) {
    const section = `4.${attack}`
    const row = new RegExp(
      `^\\| (?:4\\.\\d+, )?${section.replace('.', '\\.')}(?:, 4\\.\\d+)? \\|.*$`,
      'm',
    ).exec(page)
    t.ok(row, `a row for ${section}`)
    t.match(
      tests,
      new RegExp(`RFC 9700 (?:4\\.\\d+, )?${section.replace('.', '\\.')}[:,]`),
      `a test for ${section}`,
    )
  }
  for (const section of ['2.1', '2.1.1', '2.1.2', '2.2.1', '2.2.2', '2.3', '2.4', '2.5', '2.6']) {
    t.ok(page.includes(`\n| ${section} | `), `a row for ${section}`)
  }
})
