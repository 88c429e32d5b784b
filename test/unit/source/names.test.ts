/**
 * One exported name, one meaning: no two files declare an exported type, interface or class with the same name, so that
 * a name always leads to one declaration. Generated pairs (`Input` types next to the types with defaults) are the
 * exception: `schemas/index.ts` exports them as `input.X` and `X`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const folders = ['hooks', 'runtime', 'schemas', 'manifests']
const apart = /^schemas\/generated\/(input|validators\.d)\.ts$/
const declaration = /^export (?:declare )?(?:interface|type|(?:abstract )?class) ([A-Za-z]\w*)/gm

t.test('names: an exported type is declared once', async (t) => {
  const files = execFileSync('git', ['ls-files', '-z', ...folders], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((path) => /\.tsx?$/.test(path) && !apart.test(path))
  const places = new Map<string, Set<string>>()
  for (const path of files)
    for (const [, name = ''] of readFileSync(join(root, path), 'utf8').matchAll(declaration))
      places.set(name, (places.get(name) ?? new Set()).add(path))
  t.ok(places.size > 1000, `${places.size} names`)
  const repeated = [...places].filter(([, paths]) => paths.size > 1)
  t.same(
    repeated.map(([name, paths]) => `${name}: ${[...paths].join(', ')}`),
    [],
    'name each after its meaning, or merge them',
  )
})
