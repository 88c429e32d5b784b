/**
 * A package that `npx` would run, started by its own program when it is installed already: without npm and a shell, which
 * stay in memory beside each server.
 *
 * Only what npx would run without a look at the registry counts: the project's own package, or the exact version in npx's
 * cache. Everything else, and every doubt, is left to npx.
 * Source: npm-exec(1), "npx vs npm exec"; package.json, "bin".
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'

interface PackageJson {
  readonly name?: unknown
  readonly version?: unknown
  readonly bin?: unknown
}

/** The command as it is started: without npx where that is possible, and by our own Node. `env`: that of the process. */
export function startedCommand(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  return ownNode(withoutNpx(argv, cwd, env))
}

function withoutNpx(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const asked = askedFor(argv)
  if (!asked) return argv
  for (const folder of foldersOf(asked, cwd, env)) {
    const program = programIn(folder, asked)
    if (program !== undefined) return ['node', program, ...asked.args]
  }
  return argv
}

interface Asked {
  readonly name: string
  /** An exact version; undefined when any will do that the project has. */
  readonly version: string | undefined
  readonly args: readonly string[]
}

/** `npx [-y] NAME[@VERSION] …`; options of npx beyond that are npx's business. */
function askedFor([program, ...words]: readonly string[]): Asked | undefined {
  if (program !== 'npx') return undefined
  const [spec = '', ...args] = words[0] === '-y' || words[0] === '--yes' ? words.slice(1) : words
  const [, name, version] = /^((?:@[\w.-]+\/)?[\w][\w.-]*)(?:@(\d+\.\d+\.\d+[\w.+-]*))?$/.exec(spec) ?? []
  return name === undefined ? undefined : { name, version, args }
}

function foldersOf(
  { name, version }: Asked,
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const folders: string[] = []
  for (let at = resolve(cwd), before = ''; at !== before; before = at, at = dirname(at)) {
    folders.push(join(at, 'node_modules', name))
    // npx looks no further than the project.
    if (existsSync(join(at, 'package.json'))) break
  }
  if (version === undefined) return folders
  const cache = join(env['npm_config_cache'] ?? join(env['HOME'] ?? '', '.npm'), '_npx')
  const installs = existsSync(cache)
    ? readdirSync(cache).map((entry) => join(cache, entry, 'node_modules'))
    : []
  // npm writes this file when an installation is complete.
  const complete = installs.filter((folder) => existsSync(join(folder, '.package-lock.json')))
  return [...folders, ...complete.map((folder) => join(folder, name))]
}

/** The one program that npx would choose, when Node runs it. */
function programIn(folder: string, { name, version }: Asked): string | undefined {
  const about = packageIn(folder)
  if (about?.name !== name || (version !== undefined && about.version !== version)) return undefined
  const path = binOf(about.bin, name)
  if (path === undefined) return undefined
  const program = resolve(folder, path)
  return program.startsWith(folder + sep) && isNodeProgram(program) ? program : undefined
}

function packageIn(folder: string): PackageJson | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson
  } catch {
    return undefined
  }
}

function binOf(bin: unknown, name: string): string | undefined {
  if (typeof bin === 'string') return bin
  if (typeof bin !== 'object' || bin === null) return undefined
  const programs = Object.entries(bin)
  const [only] = programs
  const chosen =
    programs.length === 1 ? only : programs.find(([program]) => program === name.replace(/^@[^/]*\//, ''))
  return typeof chosen?.[1] === 'string' ? chosen[1] : undefined
}

function isNodeProgram(path: string): boolean {
  try {
    const file = openSync(path, 'r')
    const start = Buffer.alloc(64)
    const length = readSync(file, start)
    closeSync(file)
    return /^#! ?\/usr\/bin\/(?:env )?node\r?\n/.test(start.toString('latin1', 0, length))
  } catch {
    return false
  }
}

/** `node` means the node that runs this program, whatever the machine has. */
function ownNode(argv: readonly string[]): readonly string[] {
  const [first = '', ...rest] = argv
  const beside = `${dirname(process.execPath)}/${first}`
  return [first === 'node' && existsSync(beside) ? beside : first, ...rest]
}
