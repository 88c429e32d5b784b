/** Finds a program's package from a package runner (npx, uvx, …) or from the program's name. */
import { basename } from 'node:path'
import type { EntryProgram } from './entry.ts'
import { literalOf, type Value } from './value.ts'

export interface Package {
  /** The package name without its version and extras. */
  readonly name: string
  /** Arguments for the program in the package. */
  readonly args: readonly Value[]
}

interface RunnerRow {
  /** The words before the package name. */
  readonly verb?: readonly string[]
  /** Flags with a value. */
  readonly valued: readonly string[]
  /**
   * Flags whose value is the package. When such a flag is present, the first word is only the name of a program in the
   * package.
   */
  readonly from: readonly string[]
}

const npm = {
  valued: ['--prefix', '--registry', '-c', '--call'],
  from: ['-p', '--package'],
} as const
const uv = {
  valued: ['--python', '-p', '--index', '--index-url', '--with', '--directory', '--refresh-package'],
  from: ['--from'],
} as const

const runners: Readonly<Record<string, readonly RunnerRow[]>> = {
  npx: [npm],
  npm: [
    { ...npm, verb: ['exec'] },
    { ...npm, verb: ['x'] },
  ],
  bunx: [npm],
  bun: [{ ...npm, verb: ['x'] }],
  pnpx: [npm],
  pnpm: [{ ...npm, verb: ['dlx'] }],
  yarn: [{ ...npm, verb: ['dlx'] }],
  uvx: [uv],
  uv: [{ ...uv, verb: ['tool', 'run'] }],
  pipx: [{ ...uv, verb: ['run'], from: ['--spec'] }],
}

export function packageOf({ command, args }: Pick<EntryProgram, 'command' | 'args'>): Package | undefined {
  const name = programName(command)
  if (name === undefined) return undefined
  const rows = Object.hasOwn(runners, name) ? (runners[name] ?? []) : []
  const words = args.map((value) => literalOf(value) ?? '')
  const row = rows.find(({ verb = [] }) => verb.every((word, index) => words[index] === word))
  if (!row) return rows.length > 0 ? undefined : { name: withoutVersion(name), args }
  for (let i = row.verb?.length ?? 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '--') continue
    if (!word.startsWith('-')) return { name: withoutVersion(word), args: args.slice(i + 1) }
    if (row.valued.includes(word) || row.from.includes(word)) i++
  }
  return undefined
}

const interpreters: ReadonlySet<string> = new Set(['node', 'deno', 'bun', 'tsx', 'python', 'python3', 'ruby'])
/** True for programs that start other programs: package runners, interpreters, containers and the Windows shell. */
export function startsPrograms(command: Value): boolean {
  const name = programName(command) ?? ''
  return Object.hasOwn(runners, name) || interpreters.has(name) || /^(?:docker|podman|cmd)$/.test(name)
}

/** Path segments that do not describe the program. */
const vague = /^(?:index|main|cli|app|run|server|dist|build|src|lib|bin|)$/

/** Derives a name for the server from the package name without its scope, the script, or the program's name. */
export function packageName(program: Pick<EntryProgram, 'command' | 'args'>): string {
  const own = programName(program.command) ?? ''
  const name = interpreters.has(own) ? scriptName(program.args) : (packageOf(program)?.name ?? own)
  return (name ?? own).replace(/^@[^/]+\//, '') || 'server'
}

/** Returns the last descriptive part of the first argument that is not a flag. */
function scriptName(args: readonly Value[]): string | undefined {
  const script = args
    .map((value) => literalOf(value) ?? '')
    .find((word) => word !== '' && !word.startsWith('-'))
  // Code on the command line is not a path.
  if (script === undefined || !/^[\w@.\\/:~ -]+$/.test(script)) return undefined
  const parts = script.replaceAll('\\', '/').split('/')
  return parts
    .map((part) => part.replace(/\.(?:[cm]?[jt]s|py|rb)$/, ''))
    .findLast((part) => !vague.test(part))
}

/**
 * Returns the last path segment in lower case, without an extension such as `.exe`; undefined when the command is not
 * literal.
 */
export function programName(command: Value): string | undefined {
  const text = literalOf(command)
  if (text === undefined) return undefined
  return basename(text.replaceAll('\\', '/'))
    .toLowerCase()
    .replace(/\.(exe|cmd|bat)$/, '')
}

/** Strips the version and extras of `@scope/name@1.2` and `name[extra]==1.2`. */
function withoutVersion(name: string): string {
  return /^(@[^/]+\/)?[^@[=<>~!]+/.exec(name)?.[0] ?? name
}
