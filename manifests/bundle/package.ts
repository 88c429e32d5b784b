/**
 * Packs the npm package from the built `dist/`: `node manifests/bundle/package.ts [FOLDER]` (default: the repository).
 *
 * The package has no dependencies, because `dist/` contains them. The script packs a temporary folder with a
 * package.json that lists no dependencies. The tarball is named gatehouse-VERSION.tgz, without the scope of the package.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const target = resolve(process.argv[2] ?? root)
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const key of ['dependencies', 'devDependencies', 'allowScripts', 'imports']) delete manifest[key]

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
try {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const name of ['README.md', 'LICENSE']) cpSync(join(root, name), join(folder, name))
  const isShipped = (path: string) => !['bin', 'maps'].some((name) => path === join(root, 'dist', name))
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true, filter: isShipped })
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (const packed of globSync('*.tgz', { cwd: folder }))
    cpSync(join(folder, packed), join(target, `gatehouse-${manifest.version}.tgz`))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
