/**
 * Builds the distribution: `node manifests/bundle/main.ts [--out dist]`.
 *
 *   gatehouse.js, gatehouse-hooks.js   launchers: check Node's version, then load the program
 *   kubectl-gatehouse.js               launcher for the kubectl plugin, which is part of gatehouse
 *   runtime/, hooks/                   the two programs, in chunks that load when a command needs them
 *   cedar/                             the policy engine: its script and its WebAssembly
 *   console/                           the web console's pages, for browsers
 *   maps/                              the programs' source maps for manifests/bundle/trace.ts; not shipped
 *   schemas/                           JSON Schemas for manifests and configuration files, for editors
 *   *.cdx.json, *.NOTICES.txt          the packages in each program, with their licenses
 *
 * The folder can be copied anywhere and requires only Node.
 */
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { home } from '../../schemas/index.ts'
import { bundleConsole } from './console.ts'
import { noticesOf, packagesOf, sbomOf } from './packages.ts'
import { type BuiltProgram, programOptions, programs } from './programs.ts'

const root = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } })
const out = resolve(root, values.out)

interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
}
const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const nodeFloor = Number(/\d+/.exec(manifest.engines.node)?.[0])

rmSync(out, { recursive: true, force: true })
const engine = copyEngine()
const pages = await bundleConsole(root, join(out, 'console'))
for (const program of programs) await bundle(program)
cpSync(join(root, 'docs/reference/schemas'), join(out, 'schemas'), { recursive: true })
writeFileSync(
  join(out, 'package.json'),
  `${JSON.stringify({ type: 'module', imports: { '#cedar': './cedar/cedar_wasm.cjs' } }, null, 2)}\n`,
)

async function bundle(program: BuiltProgram): Promise<void> {
  const { metafile, outputFiles } = await build({
    ...programOptions(program),
    absWorkingDir: root,
    outdir: join(out, program.folder),
    metafile: true,
    sourcemap: 'external',
    sourcesContent: false,
    write: false,
  })
  for (const { path, contents } of outputFiles) {
    const to = path.endsWith('.map') ? join(out, 'maps', program.folder, basename(path)) : path
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, contents)
  }
  const shipped = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs))
  const paths = shipped.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path)
  const packages = packagesOf(root, [...paths, engine, ...(program.servesConsole ? pages.inputs : [])])
  writeFileSync(join(out, `${program.name}.NOTICES.txt`), noticesOf(program.name, packages))
  writeFileSync(join(out, `${program.name}.cdx.json`), sbomOf(program.name, manifest.version, packages))
  for (const [name, entry] of Object.entries(program.launchers))
    writeLauncher(name, `./${program.folder}/${entry}.js`)
}

function writeLauncher(name: string, main: string): void {
  const path = join(out, `${name}.js`)
  const text = readFileSync(join(import.meta.dirname, 'launcher.js'), 'utf8')
    .replaceAll('%PROGRAM%', name)
    .replaceAll('%NODE_FLOOR%', String(nodeFloor))
    .replaceAll('%MAIN%', main)
    .replaceAll('%RELEASES%', `${home.repository}/releases`)
  writeFileSync(path, text)
  chmodSync(path, 0o755)
}

/** Copies the engine build that is in use. Returns the path of the engine's script relative to the repository. */
function copyEngine(): string {
  const script = createRequire(import.meta.url).resolve('@cedar-policy/cedar-wasm/nodejs')
  mkdirSync(join(out, 'cedar'), { recursive: true })
  copyFileSync(script, join(out, 'cedar/cedar_wasm.cjs'))
  copyFileSync(join(dirname(script), 'cedar_wasm_bg.wasm'), join(out, 'cedar/cedar_wasm_bg.wasm'))
  return relative(root, script)
}
