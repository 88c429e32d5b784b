/** No file of the product or its tests is longer than 400 lines. The linter limits the length of functions. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const most = 400

/** Tables with one row per entry; splitting them would only hide a row. */
const tables: ReadonlyMap<string, string> = new Map([
  ['runtime/console/web/texts.ts', 'every text of the pages, as one object that a translation repeats'],
  [
    'test/helpers/console/fixture-data.ts',
    'the responses of the server to the console, one for each request',
  ],
  ['test/hooks/cases.ts', 'the golden cases'],
  ['test/unit/schemas/tables/auth-server.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/other-kinds.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/virtual-server.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/vmcp-config.ts', 'fields of one schema'],
])

t.test('sizes: no file is longer than 400 lines', async (t) => {
  const files = execFileSync('git', ['ls-files', '-z', 'hooks', 'runtime', 'schemas', 'manifests', 'test'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\0')
    .filter((path) => /\.(ts|tsx|css)$/.test(path) && !path.includes('generated/'))
  t.ok(files.length > 1000, `${files.length} files`)
  const long = files.filter((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1 > most)
  t.same(
    long.filter((path) => !tables.has(path)),
    [],
    'split it by subject',
  )
  t.same(long.toSorted(), [...tables.keys()].toSorted(), 'every exception is in use')
})
