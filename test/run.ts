/**
 * Runs tap and ends with the plain line `N passed, N failed, N skipped`.
 *
 * Failures are printed as they come, progress every few files; what a failed file wrote to stderr comes at the end, what
 * the others wrote is dropped; what was skipped is named with what it misses, the slowest files with their time. Arguments
 * are handed to tap (globs, --jobs); without any, all tests run on the built programs, those that need a Kubernetes control
 * plane or Helm last, and a few files that failed once more (unsteady.ts). With GATEHOUSE_TEST_KUBE=build both are built
 * meanwhile, at low priority, where this machine has Go and none yet.
 * Exit code 1 when anything failed, or when nothing ran.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { findKubeAssets, isEverythingBuilt } from './helpers/kube/assets.ts'
import { type FailedFile, readFailedFile, runAgain, type Counts, type Run } from './unsteady.ts'

/** Files between two lines of progress. */
const step = 10
/** Files whose time is shown at the end. */
const slowest = 15
/** Since the start: the control plane that is not built by then is not waited for. */
const buildLimitMs = 24 * 60_000

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
/** What test/quiet.ts leaves: a folder for what failed files wrote to stderr, one for what was skipped, one for times. */
const notes = join(folder, 'notes')
/** The tests' temporary folder: whatever they leave goes with it. */
const temporary = join(folder, 'tmp')
for (const name of ['notes/stderr', 'notes/skipped', 'notes/seconds', 'tmp'])
  mkdirSync(join(folder, name), { recursive: true })

/** Sources are stripped of types and compiled once for all files: about a third of the CPU of a run. */
const compiled = join(folder, 'compiled')

const started = Date.now()
const given = process.argv.slice(2)
const counts = given.length > 0 ? [await runTap(given)] : await runAll()
for (const [name, text] of read('stderr')) process.stdout.write(`\nstderr of ${name}:\n${text}`)
for (const [name, text] of read('skipped'))
  process.stdout.write(`skipped in ${name.replace(/\.\d+$/, '')}:\n${text.replace(/^/gm, '  ').trimEnd()}\n`)
showSlowest()
// A process that is about to end may still write there.
rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
const sum = (key: keyof Counts) => counts.reduce((all, one) => all + one[key], 0)
process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`)
process.exitCode = sum('failed') === 0 ? 0 : 1

async function runAll(): Promise<Counts[]> {
  const build = buildControlPlane()
  const files = execFileSync('tap', ['list'], { encoding: 'utf8' }).trim().split('\n')
  const needsBuilt = (file: string) => /helpers\/kube\/(?:apiserver|helm)\b/.test(readFileSync(file, 'utf8'))
  const first = await runSteady(files.filter((file) => !needsBuilt(file)))
  await build?.end()
  return [first, await runSteady(files.filter(needsBuilt))]
}

function buildControlPlane(): { end(): Promise<void> } | undefined {
  if (process.env['GATEHOUSE_TEST_KUBE'] !== 'build' || isEverythingBuilt()) return undefined
  const args = ['-n', '19', process.execPath, 'test/helpers/kube/assets.ts', 'build']
  const build = spawn('nice', args, { stdio: 'ignore', detached: true })
  const ended = once(build, 'exit').catch(() => undefined)
  return {
    async end() {
      if (build.exitCode === null)
        process.stdout.write('waiting for the Kubernetes control plane to be built\n')
      const limit = new AbortController()
      const left = Math.max(started + buildLimitMs - Date.now(), 0)
      await Promise.race([ended, delay(left, undefined, { signal: limit.signal })])
      limit.abort()
      if (build.exitCode === null) stopGroup(build)
      if (!findKubeAssets()) process.stdout.write('the Kubernetes control plane could not be built in time\n')
    },
  }
}

function stopGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

async function runSteady(files: readonly string[]): Promise<Counts> {
  const first = await runTap(files)
  return runAgain(
    first,
    (again) => runTap(['--jobs=1', ...again]),
    (line) => process.stdout.write(`${line}\n`),
  )
}

async function runTap(args: readonly string[]): Promise<Run> {
  const quiet = new URL('quiet.ts', import.meta.url).href
  const tap = spawn('tap', ['--reporter=terse', `--node-arg=--import=${quiet}`, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...(given.length === 0 && { GATEHOUSE_TEST_DIST: 'dist' }),
      ...process.env,
      ...{ TEST_NOTES: notes, TMPDIR: temporary, NODE_COMPILE_CACHE: compiled },
    },
  })
  const closed = once(tap, 'close')
  const failedFiles: FailedFile[] = []
  let asserts = ''
  let progress = 0
  let blank = true
  for await (const raw of createInterface({ input: tap.stdout })) {
    const line = stripVTControlCharacters(raw)
    const suites = /^Suites:.* (\d+) of (\d+) complete/.exec(line)
    const failedFile = readFailedFile(line)
    if (failedFile) failedFiles.push(failedFile)
    if (line.startsWith('Asserts:')) asserts = line
    else if (suites) progress = showProgress(progress, Number(suites[1]), Number(suites[2]))
    else if (!/^# (?:No coverage|\{ total|time=)/.test(line) && (line.trim() !== '' || !blank)) {
      blank = line.trim() === ''
      process.stdout.write(`${line}\n`)
    }
  }
  const [code] = await closed
  const count = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(asserts)?.[1] ?? 0)
  const [passed, skipped] = [count('pass'), count('skip') + count('todo')]
  // A run that counted nothing, or that tap calls failed without a failed assertion, has failed.
  const failed = Math.max(count('fail'), passed + skipped === 0 || code !== 0 ? 1 : 0)
  return { passed, failed, skipped, failedFiles }
}

/** Where the time of a long run goes. */
function showSlowest(): void {
  const times = read('seconds').map(([, text]) => text.trim().split(' ') as [seconds: string, file: string])
  if (times.length <= slowest) return
  const sorted = times.toSorted(([a], [b]) => Number(b) - Number(a)).slice(0, slowest)
  process.stdout.write(
    `slowest files, in seconds:\n${sorted.map((time) => `  ${time.join(' ')}\n`).join('')}`,
  )
}

/** The number of steps that were shown so far. */
function showProgress(before: number, done: number, all: number): number {
  const steps = Math.floor(done / step)
  if (steps > before) process.stdout.write(`${done} of ${all} files\n`)
  return Math.max(steps, before)
}

function read(kind: string): [string, string][] {
  return readdirSync(join(notes, kind))
    .sort()
    .map((name) => [name, readFileSync(join(notes, kind, name), 'utf8')])
}
