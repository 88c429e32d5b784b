/**
 * Builds a single executable that does not need Node: `node manifests/bundle/binary.ts [--out dist/bin/gatehouse]`,
 * after the build.
 *
 * The executable is Node with the program embedded (single executable application), for the current platform and
 * architecture. For another platform, run the command on that platform, or pass that platform's Node in --node.
 * Source: Node 24, single executable applications.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * Marker after which Node stores a flag: whether the executable contains a program. It is the same in all Node
 * versions.
 */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

const root = resolve(import.meta.dirname, '../..')
const suffix = process.platform === 'win32' ? '.exe' : ''
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: `dist/bin/gatehouse${suffix}` },
    node: { type: 'string', default: process.execPath },
  },
})
const dist = join(root, 'dist')
const out = resolve(root, values.out)
const work = mkdtempSync(join(tmpdir(), 'gatehouse-binary-'))
try {
  const files = programFiles()
  const blob = blobOf(files)
  mkdirSync(dirname(out), { recursive: true })
  rmSync(out, { force: true })
  copyFileSync(values.node, out)
  chmodSync(out, 0o755)
  if (process.platform === 'darwin') quietly('codesign', ['--remove-signature', out])
  quietly(process.execPath, [
    createRequire(import.meta.url).resolve('postject/dist/cli.js'),
    ...[out, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse],
    ...(process.platform === 'darwin' ? ['--macho-segment-name', 'NODE_SEA'] : []),
  ])
  if (process.platform === 'darwin') quietly('codesign', ['--sign', '-', out])
  process.stdout.write(
    `${relative(root, out)}: ${Math.round(statSync(out).size / 1e6)} MB, ${files.length} files inside\n`,
  )
} finally {
  rmSync(work, { recursive: true, force: true })
}

/** Files that must be next to the launcher, including the licenses. Paths are relative to dist. */
function programFiles(): string[] {
  const parts = ['gatehouse.js', 'package.json', 'gatehouse.NOTICES.txt']
  for (const folder of ['runtime', 'cedar', 'console']) {
    parts.push(...readdirSync(join(dist, folder)).map((name) => `${folder}/${name}`))
  }
  return parts
}

/** Returns the path to the prepared program. */
function blobOf(files: readonly string[]): string {
  // The main script of an executable is CommonJS. A CommonJS script cannot import files, but can require a file.
  const start = join(work, 'start.cjs')
  writeFileSync(start, "import('./gatehouse.js')\n")
  const assets: Record<string, string> = { 'start.cjs': start }
  for (const name of files) assets[name] = join(dist, name)
  const digest = createHash('sha256')
  const index = Object.entries(assets).map(([name, path]) => {
    const bytes = readFileSync(path)
    digest.update(`${name} ${bytes.length}\n`).update(bytes)
    return { name, size: bytes.length }
  })
  assets['index.json'] = join(work, 'index.json')
  writeFileSync(
    assets['index.json'],
    JSON.stringify({ digest: digest.digest('hex').slice(0, 16), files: index }),
  )
  const output = join(work, 'program.blob')
  const config = join(work, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({
      main: join(import.meta.dirname, 'binary-main.cjs'),
      output,
      disableExperimentalSEAWarning: true,
      assets,
    }),
  )
  quietly(process.execPath, ['--experimental-sea-config', config])
  return output
}

/** Runs a program and shows its output only if it fails. */
function quietly(program: string, args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(program, [...args], { encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}
