/**
 * Runs test files one after the other in one process: `node test/group.ts FILE...`. Each file is a subtest with its
 * name. A comment with the result of the file follows for `report.ts`.
 *
 * `tap` resolves to the subtest of the running file, so the tests, the timeout and the teardown of a file end with it.
 * A file fails when it leaves something behind that could disturb the next one: a changed environment, working
 * directory or exit code, a listener on `process`, or a handle that keeps the process alive.
 */
import { readFileSync } from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import threads from 'node:worker_threads'
import { currentTest, useTest } from './current-test.ts'
import { formatResult } from './report.ts'

/** Timeout of a file that does not set its own. */
const fileTimeoutMs = 120_000
/** Time limit for the sockets and timers of a finished file to close. */
const closingLimitMs = 30_000
/** Clock ticks per second in `/proc`, fixed in the kernel's interface. */
const ticksPerSecond = 100
/** Time limit for the process to exit after its last file. */
const exitLimitMs = 120_000

/** Modules that replace packages. */
const replacements = new Map([['async-hook-domain', import.meta.resolve('./uncaught-errors.ts')]])
registerHooks({
  resolve: (specifier, context, next) => next(replacements.get(specifier) ?? specifier, context),
})
const { default: t } = await import('tap')
const currentTestModule = `export { currentTest as default } from ${JSON.stringify(import.meta.resolve('./current-test.ts'))}`
replacements.set('tap', `data:text/javascript,${encodeURIComponent(currentTestModule)}`)

// Our worker threads start with an empty environment. Without the compile cache, each one would compile its sources again.
const cache = process.env['NODE_COMPILE_CACHE']
if (cache !== undefined) {
  threads.Worker = class extends threads.Worker {
    constructor(program: string | URL, options: threads.WorkerOptions = {}) {
      const { env } = options
      super(
        program,
        typeof env === 'object' ? { ...options, env: { ...env, NODE_COMPILE_CACHE: cache } } : options,
      )
    }
  }
  syncBuiltinESMExports()
}

// Piping adds listeners to `process`. Otherwise the first line of output would do so in the middle of a file.
t.pipe(process.stdout)
// Lets a test that waits without a pending handle time out. Otherwise the process would exit and skip the other files.
const keepAlive = setInterval(() => {}, 60_000)
const files = process.argv.splice(2)
for (const [at, file] of files.entries()) await runFile(file, files.length - at - 1)
clearInterval(keepAlive)
t.end()
setTimeout(() => {
  process.stderr.write(`still open at the end: ${process.getActiveResourcesInfo().join(', ')}\n`)
  process.exit(1)
}, exitLimitMs).unref()

async function runFile(file: string, filesBehind: number): Promise<void> {
  const startedAt = performance.now()
  const cpuBefore = usedCpuSeconds()
  const before = processState()
  const handles = process.getActiveResourcesInfo().length
  await t.test(file, { timeout: fileTimeoutMs }, async (t) => {
    // The same folder as when the file runs alone. The default contains the names of all files of the process.
    t.testdirName = resolve('.tap/fixtures', file.replace(/[^\w.-]+/g, '-'))
    useTest(t)
    await import(pathToFileURL(file).href)
  })
  const left = filesBehind > 0 ? [...(await openHandles(handles)), ...changes(before, processState())] : []
  for (const what of left) t.fail(`${file} leaves behind: ${what}`)
  const { pass = 0, fail = 1, skip = 0, todo = 0 } = currentTest?.counts ?? {}
  const seconds = (performance.now() - startedAt) / 1000
  const cpuSeconds = usedCpuSeconds() - cpuBefore
  t.comment(
    formatResult({
      file,
      passed: pass,
      failed: fail + left.length,
      skipped: skip + todo,
      seconds,
      cpuSeconds,
    }),
  )
}

/** CPU time of this process and of the child processes that have ended. */
function usedCpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childTicks() / ticksPerSecond
}

/** CPU time of ended child processes in clock ticks. 0 where the kernel has no `/proc`. */
function childTicks(): number {
  try {
    // The program name, the second field, can contain spaces.
    const [, fields = ''] = /\) (.*)/.exec(readFileSync('/proc/self/stat', 'utf8')) ?? []
    const [user, system] = fields.split(' ').slice(13, 15).map(Number)
    return (user ?? 0) + (system ?? 0)
  } catch {
    return 0
  }
}

/** State of the process that outlives a test file. Omits `exit` listeners, because packages add them when they load. */
function processState(): Readonly<Record<string, unknown>> {
  const listeners = process
    .eventNames()
    .filter((name) => name !== 'exit')
    .map((name) => [`listeners of ${String(name)}`, process.listenerCount(name)])
  const env = Object.entries(process.env).map(([name, value]) => [`variable ${name}`, value])
  return { ...Object.fromEntries([...listeners, ...env]), cwd: process.cwd(), exitCode: process.exitCode }
}

/** Lists the names of the values that differ between two states of the process. */
function changes(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => before[key] !== after[key],
  )
}

/** Waits until at most `count` handles keep the process alive. Returns a message on timeout. */
async function openHandles(count: number): Promise<string[]> {
  const endsAt = performance.now() + closingLimitMs
  while (performance.now() < endsAt) {
    if (process.getActiveResourcesInfo().length <= count) return []
    await delay(5)
  }
  return [`open handles: ${process.getActiveResourcesInfo().join(', ')}`]
}
