/**
 * Writes every manifest that follows from the hooks' registry: `node manifests/generate/main.ts`.
 * `--check` writes nothing, names what is stale or not ours, and exits with 1.
 *
 * Does not write manifests/crds (they follow from the schemas) nor manifests/examples.
 */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { files } from './files.ts'
import { allKinds, hookedKinds } from './registry.ts'

const root = resolve(import.meta.dirname, '..')
/** Folders that hold nothing but generated files. */
const owned = [
  'base',
  'certificates/cert-manager',
  'certificates/self-signed',
  'chart/crds',
  'chart/templates',
  'metacontroller',
  'monitoring',
  'observability',
  'overlays/cert-manager',
  'overlays/private-metacontroller',
]

/** A file's content, or the target of a symbolic link. */
type Entry = { readonly content: string } | { readonly link: string }

function wanted(): Map<string, Entry> {
  const crds = list('crds').filter((name) => name.endsWith('.yaml'))
  const { version }: { version: string } = JSON.parse(readFileSync(join(root, '../package.json'), 'utf8'))
  const entries = new Map<string, Entry>()
  for (const [path, content] of files({ version, kinds: allKinds(), hooked: hookedKinds(), crds })) {
    entries.set(path, { content })
  }
  // Helm wants the CRDs inside the chart; links keep them in one place, and packaging follows them.
  for (const name of crds) entries.set(`chart/crds/${name}`, { link: `../../crds/${name}` })
  return entries
}

function list(folder: string): string[] {
  try {
    return readdirSync(join(root, folder)).toSorted()
  } catch {
    return []
  }
}

function isCurrent(path: string, entry: Entry): boolean {
  try {
    const at = join(root, path)
    const linked = lstatSync(at).isSymbolicLink()
    if ('link' in entry) return linked && readlinkSync(at) === entry.link
    return !linked && readFileSync(at, 'utf8') === entry.content
  } catch {
    return false
  }
}

function write(path: string, entry: Entry): void {
  const at = join(root, path)
  mkdirSync(dirname(at), { recursive: true })
  rmSync(at, { force: true })
  if ('link' in entry) symlinkSync(entry.link, at)
  else writeFileSync(at, entry.content)
  console.log(`wrote manifests/${path}`)
}

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const entries = wanted()
const stale = [...entries].filter(([path, entry]) => !isCurrent(path, entry))
const extra = owned.flatMap((folder) =>
  list(folder)
    .map((name) => `${folder}/${name}`)
    .filter((path) => !entries.has(path)),
)
if (values.check) {
  for (const [path] of stale) console.error(`stale: manifests/${path}`)
  for (const path of extra) console.error(`not generated: manifests/${path}`)
  if (stale.length + extra.length > 0) {
    console.error('run: node manifests/generate/main.ts')
    process.exitCode = 1
  }
} else {
  for (const [path, entry] of stale) write(path, entry)
  for (const path of extra) rmSync(join(root, path))
}
