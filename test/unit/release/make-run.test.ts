/** `make run` installs only `dependencies`, which contain everything that the programs and the quickstart need. */
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const manifest: { dependencies: Record<string, string>; devDependencies: Record<string, string> } =
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Creates a folder with the Makefile and the given stamp files. */
function makeFolder(t: Test, stamps: readonly string[] = []): string {
  const folder = t.testdir({ node_modules: {} })
  for (const name of ['Makefile', 'package.json', 'package-lock.json'])
    cpSync(join(root, name), join(folder, name), { preserveTimestamps: true })
  for (const name of stamps) writeFileSync(join(folder, 'node_modules', name), '')
  return folder
}

function runMake(t: Test, folder: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('make', args, { cwd: folder, encoding: 'utf8' })
  t.equal(status, 0, stderr)
  return stdout
}

/** Returns the commands that `make` would run for a target when the given stamp files exist. */
function dryRun(t: Test, target: string, ...stamps: readonly string[]): string {
  return runMake(t, makeFolder(t, stamps), '--dry-run', target)
}

t.test(
  'make run: installs only the packages that it needs; other targets install all packages',
  async (t) => {
    t.match(dryRun(t, 'run'), /npm ci .*--omit=dev/)
    for (const target of ['lint', 'unit', 'test'])
      t.notMatch(/npm ci.*/.exec(dryRun(t, target))?.[0] ?? '--omit', '--omit', target)
  },
)

t.test('make: installs nothing when the packages are installed', async (t) => {
  t.notMatch(dryRun(t, 'run', '.gatehouse-runtime'), 'npm ci')
  t.match(dryRun(t, 'lint', '.gatehouse-runtime'), 'npm ci', 'the other packages are missing')
  for (const target of ['run', 'lint', 'test'])
    t.notMatch(dryRun(t, target, '.gatehouse-installed', '.gatehouse-runtime'), 'npm ci', target)
})

t.test('make: installs the packages once for several targets', async (t) => {
  const folder = makeFolder(t)
  const bin = join(folder, 'node_modules/.bin')
  mkdirSync(bin)
  // Each program prints its arguments. A dry run cannot show this, because it creates no stamp files.
  for (const name of ['npm', 'tap', 'node', 'biome', 'oxlint', 'tsc'])
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@"\n`, { mode: 0o755 })
  const installations = (target: string) => runMake(t, folder, target).match(/^npm ci.*$/gm) ?? []
  const all = installations('test')
  t.equal(all.length, 1)
  t.notMatch(all[0], '--omit')
  for (const target of ['run', 'binary', 'test']) t.same(installations(target), [], target)
})

t.test('dependencies: contain each imported package, and the servers of the quickstart', async (t) => {
  const files = globSync('{runtime,hooks,schemas,manifests/bundle}/**/*.{ts,tsx}', { cwd: root })
  const imported = files.flatMap((file) =>
    [
      ...readFileSync(join(root, file), 'utf8').matchAll(
        /^(?:import|export|\} from|const)\b[^'\n]*'([^'.#][^']*)'/gm,
      ),
    ]
      .filter(([line]) => /from '|^import '|import\('/.test(line) && !line.startsWith('import type'))
      .map(([, name = '']) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
  )
  const needed = new Set(
    imported.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name)),
  )
  for (const file of globSync('manifests/examples/quickstart/*.yaml', { cwd: root }))
    for (const [, name = ''] of readFileSync(join(root, file), 'utf8').matchAll(/npx -y (@[\w-]+\/[\w-]+)/g))
      needed.add(name)
  t.ok(needed.size > 25, `${needed.size} packages`)
  t.ok(needed.has('@modelcontextprotocol/server-everything'))
  for (const name of [...needed, 'esbuild', 'node']) t.ok(name in manifest.dependencies, name)
})
