/**
 * Writes every manifest that is derived from the hooks' registry: `node manifests/generate/main.ts`. With `--check`,
 * the script writes nothing, lists outdated and unexpected files, and exits with code 1 if there are any.
 *
 * Does not write manifests/crds (derived from the schemas) or manifests/examples.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { files } from './files.ts'
import { allKinds, hookedKinds } from './registry.ts'

const root = resolve(import.meta.dirname, '..')
/** Folders that contain only generated files. */
const owned = [
  'base',
  'certificates/cert-manager',
  'certificates/self-signed',
  'chart/charts/metacontroller-definitions/crds',
  'chart/definitions',
  'gateway-api',
  'metacontroller',
  'monitoring',
  'observability',
  'overlays/cert-manager',
  'overlays/everything',
  'overlays/private-metacontroller',
]

/** Contents, keyed by path below manifests/. */
function wanted(): Map<string, string> {
  const crds = list('crds').filter((name) => name.endsWith('.yaml'))
  const { version }: { version: string } = JSON.parse(readFileSync(join(root, '../package.json'), 'utf8'))
  const entries = new Map(files({ version, kinds: allKinds(), hooked: hookedKinds(), crds }))
  // Helm requires the CRDs inside the chart and warns about symbolic links.
  for (const name of crds) entries.set(`chart/definitions/${name}`, lasting(name))
  return entries
}

/** Returns a definition that Helm keeps when the release is uninstalled. */
function lasting(name: string): string {
  const text = readFileSync(join(root, 'crds', name), 'utf8')
  return text.replace(/^metadata:$/m, 'metadata:\n  annotations: {helm.sh/resource-policy: keep}')
}

function list(folder: string): string[] {
  try {
    return readdirSync(join(root, folder)).toSorted()
  } catch {
    return []
  }
}

function isCurrent(path: string, content: string): boolean {
  try {
    const at = join(root, path)
    return !lstatSync(at).isSymbolicLink() && readFileSync(at, 'utf8') === content
  } catch {
    return false
  }
}

function write(path: string, content: string): void {
  const at = join(root, path)
  mkdirSync(dirname(at), { recursive: true })
  rmSync(at, { force: true })
  writeFileSync(at, content)
  console.log(`wrote manifests/${path}`)
}

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const entries = wanted()
const stale = [...entries].filter(([path, content]) => !isCurrent(path, content))
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
  for (const [path, content] of stale) write(path, content)
  for (const path of extra) rmSync(join(root, path))
}
