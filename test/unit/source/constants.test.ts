/** Module constants are written in camelCase, like all other names. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const folders = ['hooks', 'runtime', 'schemas', 'manifests', 'test/helpers']

t.test('constants: no name in capitals', async (t) => {
  const files = execFileSync('git', ['ls-files', '-z', ...folders], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((path) => /\.tsx?$/.test(path) && !path.includes('generated/'))
  t.ok(files.length > 500)
  const found = files.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]+)\b/gm)].map(
      ([, name]) => `${path}: ${name}`,
    ),
  )
  t.same(found, [])
})
