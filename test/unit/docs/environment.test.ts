/** The page of environment variables lists exactly the Gatehouse variables that the sources read. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const ours = /\b(?:GATEHOUSE|VMCP)_[A-Z0-9_]*[A-Z0-9]_?/g

/** Names inside a process, which cannot be set from outside. */
const internal: ReadonlySet<string> = new Set(['GATEHOUSE_LOCK_AUTHORIZATION', 'GATEHOUSE_LOCK_HEADERS'])

function namesIn(paths: readonly string[]): ReadonlySet<string> {
  return new Set(paths.flatMap((path) => readFileSync(join(root, path), 'utf8').match(ours) ?? []))
}

await t.test('environment: the page and the sources contain the same variables', async (t) => {
  const listed = execFileSync('git', ['ls-files', '-z', 'runtime', 'hooks', 'schemas'], {
    cwd: root,
    encoding: 'utf8',
  })
  const sources = namesIn(listed.split('\0').filter((path) => path.endsWith('.ts')))
  const page = namesIn(['docs/reference/environment.md'])
  t.ok(page.size > 50, `${page.size} variables`)
  t.same(
    [...sources].filter((name) => !page.has(name) && !internal.has(name)),
    [],
    'each variable is on the page',
  )
  t.same(
    [...page].filter((name) => !sources.has(name)),
    [],
    'each variable on the page is read or set',
  )
})
