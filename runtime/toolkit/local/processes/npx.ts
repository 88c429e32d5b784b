/**
 * Starts an installed npm package directly instead of through `npx`, because npm and its shell would stay in memory
 * alongside each server.
 *
 * Applies only to packages that npx would run without the registry: the project's own dependency, or the exact version
 * in npx's cache. In all other cases, npx starts the package.
 * Source: npm-exec(1), "npx vs npm exec"; package.json, "bin".
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'

interface PackageJson {
  readonly name?: unknown
  readonly version?: unknown
  readonly bin?: unknown
}

/**
 * Returns the start command, avoiding npx where possible and using the current Node. `env` is the environment of the
 * process.
 */
export function startedCommand(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  return withCurrentNode(withoutNpx(argv, cwd, env))
}

function withoutNpx(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const request = parseNpx(argv)
  if (!request) return argv
  for (const folder of foldersOf(request, cwd, env)) {
    const program = programIn(folder, request)
    if (program !== undefined) return ['node', program, ...request.args]
  }
  return argv
}

interface NpxRequest {
  readonly name: string
  /** An exact version. Undefined when any version in the project is acceptable. */
  readonly version: string | undefined
  readonly args: readonly string[]
}

/** Parses `npx [-y] NAME[@VERSION] …`. Returns undefined for any other npx options. */
function parseNpx([program, ...words]: readonly string[]): NpxRequest | undefined {
  if (program !== 'npx') return undefined
  const [spec = '', ...args] = words[0] === '-y' || words[0] === '--yes' ? words.slice(1) : words
  const [, name, version] = /^((?:@[\w.-]+\/)?[\w][\w.-]*)(?:@(\d+\.\d+\.\d+[\w.+-]*))?$/.exec(spec) ?? []
  return name === undefined ? undefined : { name, version, args }
}

function foldersOf(
  { name, version }: NpxRequest,
  cwd: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const folders: string[] = []
  for (let at = resolve(cwd), before = ''; at !== before; before = at, at = dirname(at)) {
    folders.push(join(at, 'node_modules', name))
    // npx does not search beyond the project folder.
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

/** Returns the program that npx would choose, if it is a Node program. */
function programIn(folder: string, { name, version }: NpxRequest): string | undefined {
  const about = packageIn(folder)
  if (about?.name !== name || (version !== undefined && about.version !== version)) return undefined
  const path = binOf(about.bin, name)
  if (path === undefined) return undefined
  const program = resolve(folder, path)
  return program.startsWith(folder + sep) && isNodeProgram(program) ? program : undefined
}

/** True when an installation of the package in `modules` was interrupted, or its program no longer exists. */
export function hasBrokenProgram(modules: string, name: string): boolean {
  if (!existsSync(join(modules, '.package-lock.json'))) return true
  const folder = join(modules, name)
  const path = binOf(packageIn(folder)?.bin, name)
  return path === undefined || !existsSync(resolve(folder, path))
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

/** Replaces `node` with the Node that runs this program. */
function withCurrentNode(argv: readonly string[]): readonly string[] {
  const [first = '', ...rest] = argv
  const sibling = `${dirname(process.execPath)}/${first}`
  return [first === 'node' && existsSync(sibling) ? sibling : first, ...rest]
}
