/** Starts `gatehouse up` in a detached process, whose output goes to a log file, and waits until it has reported. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCode, printError } from '../../../toolkit/terminal/output.ts'
import { forTerminal } from '../../../toolkit/terminal/plain-text.ts'
import { selfCommand } from '../../../toolkit/terminal/self.ts'
import { askInstance } from './control.ts'
import { type Instance, isRunning, runningInstance } from './instance.ts'
import { progressPrinter } from './progress.ts'
import type { UpReport } from '../report.ts'
import type { UpState } from '../state.ts'

const pollMs = 100
const maxLogBytes = 5 * 1024 * 1024
const shownLines = 20

export interface BackgroundOptions {
  /** Prints the report, and returns the exit code. */
  readonly show: (report: UpReport) => number
  readonly whileRunning: boolean
  /** True to print no progress. */
  readonly json: boolean
}

/** Returns the exit code: that of `show`, or 1 when the process ended before it had reported. */
export async function runInBackground(
  state: UpState,
  { show, whileRunning, json }: BackgroundOptions,
): Promise<number> {
  const log = openLog(state.logFile)
  const [program = '', ...args] = selfCommand()
  const more = whileRunning ? ['--while-running'] : []
  const child = spawn(program, [...args, 'up', '--resume', ...more], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const from = statSync(state.logFile).size
  const showProgress = json ? () => {} : progressPrinter()
  const ended = new AbortController()
  child.once('exit', () => ended.abort())
  child.once('error', () => ended.abort())
  while (!ended.signal.aborted) {
    const instance = runningInstance(state.folder)
    if (instance?.pid === child.pid && instance?.control) {
      const report = (await askInstance(instance, 'GET', 'status')) as UpReport
      child.unref()
      const code = show(report)
      printError(`Runs in the background (process ${report.pid}). Log: ${state.logFile}`)
      return code
    }
    showProgress(instance?.starting ?? [])
    await sleep(pollMs, undefined, { signal: ended.signal }).catch(() => undefined)
  }
  const text = readFileSync(state.logFile).subarray(from).toString('utf8').trim()
  for (const line of text.split('\n').slice(-shownLines)) printError(forTerminal(line))
  return exitCode.failed
}

/** Opens the log for appending. A large log is moved away first. */
function openLog(path: string): number {
  if (existsSync(path) && statSync(path).size > maxLogBytes) renameSync(path, `${path}.1`)
  return openSync(path, 'a', 0o600)
}

/** Resolves to true when the instance has ended, or to false after the time limit. */
export async function instanceEnded(instance: Instance, limitMs: number): Promise<boolean> {
  for (const until = performance.now() + limitMs; performance.now() < until; ) {
    if (!isRunning(instance)) return true
    await sleep(pollMs)
  }
  return false
}
