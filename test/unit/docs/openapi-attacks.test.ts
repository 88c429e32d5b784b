/** docs/evidence/openapi-attacks.md names a test for every attack. Each test must exist under the given name. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/evidence/openapi-attacks.md'), 'utf8')
const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| Attack |'))

t.test('OpenAPI attacks: every row names tests that exist', async (t) => {
  t.ok(rows.length > 30, `${rows.length} rows`)
  for (const row of rows) {
    const named = [...row.matchAll(/`((?:behaviour|e2e|property|unit)\/[\w./-]+)`(?: "([^"]+)")?/g)]
    t.ok(named.length > 0, row.slice(0, 80))
    for (const [, file = '', title] of named) {
      const path = join(root, 'test', `${file}.test.ts`)
      if (!t.ok(existsSync(path), file) || title === undefined) continue
      t.ok(readFileSync(path, 'utf8').includes(title), `${file} has a test "${title}"`)
    }
  }
})
