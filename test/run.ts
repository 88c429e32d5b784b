/**
 * Runs tap and ends with the plain line `N passed, N failed, N skipped`.
 *
 * Failures are printed as they come, progress every few files; what a failed file wrote to stderr comes at the end, what
 * the others wrote is dropped. Arguments are handed to tap (globs, --jobs); without any,
 * all tests run. Exit code 1 when anything failed, or when nothing ran.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'

/** Files between two lines of progress. */
const step = 10

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
const stderrFolder = join(folder, 'stderr')
/** The tests' temporary folder: whatever they leave goes with it. */
const temporary = join(folder, 'tmp')
mkdirSync(stderrFolder)
mkdirSync(temporary)
const quiet = new URL('quiet.ts', import.meta.url).href
const tap = spawn('tap', ['--reporter=terse', `--node-arg=--import=${quiet}`, ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, TEST_STDERR: stderrFolder, TMPDIR: temporary },
})
let asserts = ''
let progress = -1
let blank = true

createInterface({ input: tap.stdout }).on('line', (raw) => {
  const line = stripVTControlCharacters(raw)
  const suites = /^Suites:.* (\d+) of (\d+) complete/.exec(line)
  if (line.startsWith('Asserts:')) asserts = line
  else if (/^# (?:No coverage|\{ total|time=)/.test(line)) return
  else if (suites) showProgress(Number(suites[1]), Number(suites[2]))
  else if (line.trim() !== '' || !blank) {
    blank = line.trim() === ''
    process.stdout.write(`${line}\n`)
  }
})

function showProgress(done: number, total: number): void {
  if (done === 0 || Math.floor(done / step) === progress) return
  progress = Math.floor(done / step)
  process.stdout.write(`${done} of ${total} files\n`)
}

tap.on('close', (code) => {
  for (const name of readdirSync(stderrFolder))
    process.stdout.write(`\nstderr of ${name}:\n${readFileSync(join(stderrFolder, name), 'utf8')}`)
  // A process that is about to end may still write there.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  const count = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(asserts)?.[1] ?? 0)
  const passed = count('pass')
  // A run that counted nothing, or that tap calls failed without a failed assertion, has failed.
  const failed = Math.max(count('fail'), passed === 0 || code !== 0 ? 1 : 0)
  process.stdout.write(`\n${passed} passed, ${failed} failed, ${count('skip') + count('todo')} skipped\n`)
  process.exitCode = failed === 0 ? 0 : 1
})
