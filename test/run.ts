/**
 * Runs test files and ends with the plain line `N passed, N failed, N skipped`.
 *
 * `node test/run.ts [--jobs=N] [FILE or GLOB...]`. Without files, all tests run on the built programs; those that need a
 * Kubernetes control plane or Helm run last while these are being built (GATEHOUSE_TEST_KUBE=build, on a machine with Go).
 * `schedule.ts` distributes the files over processes, `group.ts` runs in each process, `report.ts` reads its output.
 *
 * Failures are printed when their process ends, together with its stderr. The last lines list skipped tests and the
 * slowest files. The exit code is 1 when a test failed or when no test ran.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, globSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { findKubeAssets, isEverythingBuilt } from './helpers/kube/assets.ts'
import { type FileResult, readReport } from './report.ts'
import { scheduleFiles } from './schedule.ts'
import { type Counts, type Run, runAgain } from './unsteady.ts'

/** Number of files between two progress lines. */
const step = 10
/** Number of slow files that are listed at the end. */
const slowest = 15
/** Maximum number of stderr bytes that are printed for a process. */
const maxStderr = 65_536
/** Longest wait for the control plane, from the start of the run. */
const buildLimitMs = 24 * 60_000

const { values, positionals } = parseArgs({ options: { jobs: { type: 'string' } }, allowPositionals: true })
/** Many tests wait for processes and timers, so one more process than cores keeps the cores busy. */
const jobs = Number(values.jobs ?? availableParallelism() + 1)

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
/** Temporary folder of the tests, deleted at the end with its contents. */
const temporary = join(folder, 'tmp')
mkdirSync(temporary)
const groupProgram = join(import.meta.dirname, 'group.ts')
const environment = {
  ...(positionals.length === 0 && { GATEHOUSE_TEST_DIST: 'dist' }),
  ...process.env,
  TMPDIR: temporary,
  // Types are stripped and sources are compiled once for all processes.
  NODE_COMPILE_CACHE: join(folder, 'compiled'),
  // Each file has its own timeout.
  TAP_TIMEOUT: '0',
}

const started = Date.now()
const finished: FileResult[] = []
const skippedTests: string[] = []
const counts = positionals.length > 0 ? [await runSteady(globSync(positionals))] : await runAll()
for (const text of skippedTests.toSorted()) process.stdout.write(`skipped: ${text}\n`)
showSlowest()
// A process that is exiting may still write to the folder.
rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
const sum = (key: keyof Counts) => counts.reduce((all, one) => all + one[key], 0)
const failed = sum('passed') + sum('skipped') === 0 ? Math.max(sum('failed'), 1) : sum('failed')
process.stdout.write(`\n${sum('passed')} passed, ${failed} failed, ${sum('skipped')} skipped\n`)
process.exitCode = failed === 0 ? 0 : 1

async function runAll(): Promise<Counts[]> {
  const files = globSync('test/**/*.test.ts', { exclude: ['**/fixtures/**'] })
  const build = buildControlPlane()
  if (!build) return [await runSteady(files)]
  const needsBuilt = (file: string) => /helpers\/kube\/(?:apiserver|helm)\b/.test(readFileSync(file, 'utf8'))
  const first = await runSteady(files.filter((file) => !needsBuilt(file)))
  await build.end()
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
    // The process has already exited.
  }
}

async function runSteady(files: readonly string[]): Promise<Counts> {
  const first = await runProcesses(scheduleFiles(files), jobs)
  const alone = (again: readonly string[]) =>
    runProcesses(
      again.map((file) => [file]),
      1,
    )
  return runAgain(first, alone, (line) => process.stdout.write(`${line}\n`))
}

/** Runs one process per list of files, at most `limit` at the same time. */
async function runProcesses(lists: readonly (readonly string[])[], limit: number): Promise<Run> {
  const runs: Run[] = []
  const all = lists.flat().length
  let done = 0
  const waiting = lists.values()
  const work = async () => {
    for (const files of waiting) {
      runs.push(await runProcess(files))
      const before = done
      done += files.length
      if (Math.floor(done / step) > Math.floor(before / step))
        process.stdout.write(`${done} of ${all} files\n`)
    }
  }
  await Promise.all(Array.from({ length: limit }, work))
  const sum = (key: keyof Counts) => runs.reduce((total, run) => total + run[key], 0)
  return {
    ...{ passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') },
    failedFiles: runs.flatMap(({ failedFiles }) => failedFiles),
    notRun: runs.flatMap(({ notRun }) => notRun),
  }
}

async function runProcess(files: readonly string[]): Promise<Run> {
  const [stdout, stderr] = [
    join(folder, `${files[0]?.replaceAll('/', '-')}.out`),
    join(folder, `${files[0]?.replaceAll('/', '-')}.err`),
  ]
  const descriptors = [openSync(stdout, 'w'), openSync(stderr, 'w')]
  const child = spawn(process.execPath, [groupProgram, ...files], {
    stdio: ['ignore', ...descriptors],
    env: environment,
  })
  for (const descriptor of descriptors) closeSync(descriptor)
  const [code, signal] = await once(child, 'exit')
  const { results, failures, skipped } = readReport(readFileSync(stdout, 'utf8'))
  finished.push(...results)
  skippedTests.push(...skipped)
  const failedFiles = results.filter(({ failed }) => failed > 0).map(({ file, passed }) => ({ file, passed }))
  const [broken, ...notRun] = files.slice(results.length)
  // The process ended in this file, or after its last file.
  const culprit = broken ?? (code !== 0 && failedFiles.length === 0 ? files.at(-1) : undefined)
  if (culprit !== undefined)
    failedFiles.push({ file: culprit, passed: results.find(({ file }) => file === culprit)?.passed ?? 0 })
  const run = {
    passed: sumOf(results, 'passed'),
    failed: sumOf(results, 'failed') + (culprit === undefined ? 0 : 1),
    skipped: sumOf(results, 'skipped'),
  }
  if (failedFiles.length > 0) {
    for (const failure of failures) process.stdout.write(`\nFAILED ${failure}\n`)
    if (culprit !== undefined)
      process.stdout.write(`\nFAILED ${culprit}: the process ended with ${signal ?? code}\n`)
    const text = readFileSync(stderr).subarray(-maxStderr).toString()
    if (text !== '')
      process.stdout.write(
        `\nstderr of ${files.length === 1 ? files[0] : `the process of ${files[0]}`}:\n${text}\n`,
      )
  }
  return { ...run, failedFiles, notRun }
}

function sumOf(results: readonly FileResult[], key: keyof Counts): number {
  return results.reduce((total, result) => total + result[key], 0)
}

/** Prints the files that took the most time. */
function showSlowest(): void {
  if (finished.length <= slowest) return
  const longest = finished.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowest)
  const lines = longest.map(
    ({ seconds, cpuSeconds, file }) => `  ${seconds.toFixed(1)} (${cpuSeconds.toFixed(1)}) ${file}\n`,
  )
  process.stdout.write(`slowest files, in seconds (and CPU seconds):\n${lines.join('')}`)
}
