/** The registry is the only table of kinds in hooks/. All other lists of kinds are derived from it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { makeHooks, defaultSettings } from '../../../hooks/index.ts'
import { kinds } from '../../../schemas/index.ts'

const hooks = resolve(import.meta.dirname, '../../../hooks')

t.test('registry: every kind of the API has hooks', async (t) => {
  t.strictSame(
    [...makeHooks(defaultSettings)].map(({ kind, plural }) => [kind, plural]),
    kinds.map(({ kind, plural }) => [kind, plural]),
  )
})

t.test('registry: no other file of hooks/ lists the kinds', async (t) => {
  const files = readdirSync(hooks, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const named = (file: string) => {
    const code = readFileSync(join(hooks, file), 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')
    return kinds.filter(({ kind }) => new RegExp(`\\b${kind}\\b`).test(code)).length
  }
  t.equal(named('registry/registry.ts'), kinds.length)
  for (const file of files) {
    if (file === 'registry/registry.ts' || file.startsWith('kinds/')) continue
    if (named(file) > kinds.length / 2)
      t.fail(`hooks/${file} lists kinds; derive it from hooks/registry/registry.ts`)
  }
})
