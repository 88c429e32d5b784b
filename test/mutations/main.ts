/**
 * Checks that tests detect changes to the specification: `node test/mutations/main.ts [--only N]... [--jobs N]`.
 *
 * Applies one mutation at a time in a copy of the working tree and runs the tests that must fail. `--only` takes the
 * number of a row and can be repeated; `--jobs` is the number of copies. Exits with 1 when a mutation survives, when a
 * mutation cannot be applied, or when a test fails without a mutation.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Mutation, mutate } from './mutation.ts'
import { mutations } from './mutations.ts'

const root = resolve(import.meta.dirname, '../..')
/** Time limit for a test file in seconds. A mutation may make a test wait forever. */
const testLimitSec = 300
const testLimit = String(testLimitSec)
/** Generators that read `schemas/`. */
const generators = ['schemas/generate/main.ts', 'manifests/generate/main.ts']

const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true }, jobs: { type: 'string', default: '1' } },
})
const selected = selectRows(values.only)
const jobs = Number(values.jobs)
if (!Number.isSafeInteger(jobs) || jobs < 1)
  throw new RangeError(`--jobs: expected a number, got ${values.jobs}`)
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mutations-'))
const startedAt = performance.now()
let problems = 0
try {
  await runAll()
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}
const seconds = Math.round((performance.now() - startedAt) / 1000)
console.log(`${selected.length - problems} of ${selected.length} mutations caught, ${seconds} s`)
process.exitCode = problems === 0 ? 0 : 1

/** Returns the rows with their numbers, which start at 1. */
function selectRows(only: readonly string[] | undefined): readonly (readonly [number, Mutation])[] {
  const rows = mutations.map((mutation, index) => [index + 1, mutation] as const)
  const unknown = (only ?? []).filter((text) => !rows.some(([number]) => String(number) === text))
  if (unknown.length > 0) throw new RangeError(`no row ${unknown.join(', ')}; the last row is ${rows.length}`)
  return only === undefined ? rows : rows.filter(([number]) => only.includes(String(number)))
}

async function runAll(): Promise<void> {
  const rows = [...selected]
  /** Result of each test without a mutation: the first failure, or undefined. */
  const unmutated = new Map<string, Promise<string | undefined>>()
  const work = async (copy: string): Promise<void> => {
    for (let row = rows.shift(); row; row = rows.shift()) {
      const [number, mutation] = row
      const { caught, detail } = await check(copy, mutation, unmutated)
      if (!caught) problems++
      console.log(`${caught ? 'caught' : 'PROBLEM'} ${number} ${mutation.id}: ${detail}`)
    }
  }
  await Promise.all(Array.from({ length: jobs }, async (_, index) => work(copyTree(index))))
}

async function check(
  copy: string,
  mutation: Mutation,
  unmutated: Map<string, Promise<string | undefined>>,
): Promise<{ readonly caught: boolean; readonly detail: string }> {
  const { file, tests } = mutation
  for (const test of tests) {
    const result = unmutated.get(test) ?? failureOf(copy, test)
    unmutated.set(test, result)
    const failure = await result
    if (failure !== undefined)
      return { caught: false, detail: `${test} fails without the mutation: ${failure}` }
  }
  try {
    const path = join(copy, file)
    writeFileSync(path, mutate(readFileSync(path, 'utf8'), mutation))
    if (file.startsWith('schemas/')) for (const program of generators) generate(copy, program)
    const found: string[] = []
    for (const test of tests) {
      const failure = await failureOf(copy, test)
      if (failure === undefined) return { caught: false, detail: `survived ${test}` }
      found.push(`${test}: ${failure}`)
    }
    return { caught: true, detail: found.join('; ') }
  } catch (error) {
    return { caught: false, detail: error instanceof Error ? error.message : String(error) }
  } finally {
    git(copy, 'checkout', '--quiet', '--', '.')
    git(copy, 'clean', '--quiet', '-d', '--force')
  }
}

/** Returns the title of the first failing assertion of a test file; undefined when the file passes. */
async function failureOf(copy: string, test: string): Promise<string | undefined> {
  const child = spawn(process.execPath, [join('test', test)], {
    cwd: copy,
    env: { ...process.env, TAP_TIMEOUT: testLimit, NODE_COMPILE_CACHE: join(folder, 'compiled') },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 2 * testLimitSec * 1000,
  })
  let output = ''
  child.stdout.on('data', (data: Buffer) => (output += data.toString()))
  child.stderr.on('data', (data: Buffer) => (output += data.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code === 0) return undefined
  const title = /^\s*not ok \d+ - (.*?)(?: #.*)?$/m.exec(output)?.[1]
  return title ?? output.trim().split('\n').slice(-3).join(' ').slice(0, 200)
}

/** Copies the tracked and new files of the working tree. Git restores the copy after each mutation. */
function copyTree(index: number): string {
  const copy = join(folder, String(index))
  const files = git(root, 'ls-files', '--cached', '--others', '--exclude-standard', '-z')
  for (const file of new Set(files.split('\0'))) {
    if (file === '') continue
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    copyFileSync(join(root, file), join(copy, file))
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  git(copy, 'init', '--quiet')
  git(copy, 'add', '--all', '--force', '.')
  return copy
}

function generate(copy: string, program: string): void {
  const { status, stderr } = spawnSync(process.execPath, [program], { cwd: copy, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} rejects the mutation: ${stderr.slice(-300)}`)
}

function git(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr}`)
  return stdout
}
