/**
 * Generates everything that follows from the schema sources: `node schemas/generate/main.ts` writes,
 * `--check` writes nothing, names what is stale and exits with 1.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Bundle, Schema } from '../schema.ts'
import { loadBundle } from './load.ts'
import { typesFile } from './types.ts'
import { validatorFiles } from './validators.ts'

const root = resolve(import.meta.dirname, '../..')
/** Folders that hold nothing but generated files. */
const owned = ['schemas/generated']

/** Path relative to the repository root -> content. */
export async function generate(): Promise<Map<string, string>> {
  const bundle = loadBundle(join(root, 'schemas'))
  const { js, dts } = await validatorFiles(bundle)
  return new Map([
    ['schemas/generated/bundle.json', bundleFile(bundle)],
    ['schemas/generated/types.ts', typesFile(bundle, 'filled')],
    ['schemas/generated/input.ts', typesFile(bundle, 'input')],
    ['schemas/generated/validators.js', js],
    ['schemas/generated/validators.d.ts', dts],
  ])
}

/** What the validator needs at run time: no descriptions of fields. */
function bundleFile(bundle: Bundle): string {
  const slim = (schema: Schema): Schema =>
    JSON.parse(
      JSON.stringify(schema, (key, value: unknown) => (isText(key, value) ? undefined : value)),
    ) as Schema
  const defs = Object.fromEntries(Object.entries(bundle.defs).map(([name, schema]) => [name, slim(schema)]))
  return `${JSON.stringify({ ...bundle, defs })}\n`
}

/** A schema's description, but not a field that is called `description`. */
function isText(key: string, value: unknown): boolean {
  return key === 'description' && typeof value === 'string'
}

function existing(): string[] {
  return owned.flatMap((dir) => {
    try {
      return readdirSync(join(root, dir)).map((name) => `${dir}/${name}`)
    } catch {
      return []
    }
  })
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
  const files = await generate()
  const stale = [...files].filter(([path, content]) => read(path) !== content).map(([path]) => path)
  const extra = existing().filter((path) => !files.has(path))
  if (values.check) {
    for (const path of stale) console.error(`stale: ${path}`)
    for (const path of extra) console.error(`not generated: ${path}`)
    if (stale.length + extra.length > 0) {
      console.error('run: node schemas/generate/main.ts')
      process.exitCode = 1
    }
    return
  }
  for (const path of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), files.get(path) ?? '')
    console.log(`wrote ${relative(root, join(root, path))}`)
  }
  for (const path of extra) rmSync(join(root, path))
}

if (import.meta.main) await main()
