/**
 * Starts `gatehouse up` in a detached process, whose output goes to a log file, and waits until the process has printed
 * its report.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCode, printError } from '../../../toolkit/terminal/output.ts'
import { forTerminal } from '../../../toolkit/terminal/plain-text.ts'
import { selfCommand } from '../../../toolkit/terminal/self.ts'
import { stopSignal, stoppedExitCode } from '../../../toolkit/terminal/stop.ts'
import { askInstance } from './control.ts'
import { type Instance, isRunning, runningInstance } from './instance.ts'
import type { UpReport } from '../report.ts'
import type { UpState } from '../state.ts'

const pollMs = 100
const maxLogBytes = 5 * 1024 * 1024
const shownLines = 20
const politeMs = 15_000

export interface BackgroundOptions {
  /** Prints the report, and returns the exit code. */
  readonly show: (report: UpReport) => number
  /** Restores the clients' files after Ctrl-C. Called when the process has ended. */
  readonly undo: () => Promise<unknown>
  readonly whileRunning: boolean
  readonly json: boolean
}

/**
 * Returns the exit code of `show`, or 1 if the process ended before its report was available. Ctrl-C ends the process
 * and undoes its changes. Until the report is available, the process's log is printed as well.
 */
export async function runInBackground(state: UpState, options: BackgroundOptions): Promise<number> {
  const log = openLog(state.logFile)
  let printed = statSync(state.logFile).size
  const child = startDetached(log, options)
  closeSync(log)
  const ended = new AbortController()
  child.once('exit', () => ended.abort())
  child.once('error', () => ended.abort())
  const stop = new AbortController()
  void stopSignal(stop)
  const wake = AbortSignal.any([ended.signal, stop.signal])
  while (!wake.aborted) {
    // The process writes its report to the log after it has published its address.
    const lines = linesAfter(state.logFile, printed)
    const instance = runningInstance(state.folder)
    if (instance?.pid === child.pid && instance?.control) {
      const report = (await askInstance(instance, 'GET', 'status')) as UpReport
      child.unref()
      const code = options.show(report)
      printError(`Runs in the background (process ${report.pid}). Log: ${state.logFile}`)
      return code
    }
    printed += lines.length
    if (!options.json && lines.length > 0) printError(forTerminal(lines.toString('utf8').trimEnd()))
    await sleep(pollMs, undefined, { signal: wake }).catch(() => undefined)
  }
  if (stop.signal.aborted) {
    printError('Stopping …')
    await endProcess(child, ended.signal)
    await options.undo()
    return stoppedExitCode(stop.signal)
  }
  const rest = readFileSync(state.logFile).subarray(printed).toString('utf8').trim()
  for (const line of rest.split('\n').slice(-shownLines)) printError(forTerminal(line))
  return exitCode.failed
}

function startDetached(log: number, { whileRunning }: BackgroundOptions): ChildProcess {
  const [program = '', ...args] = selfCommand()
  const more = whileRunning ? ['--while-running'] : []
  return spawn(program, [...args, 'up', '--resume', ...more], {
    detached: true,
    stdio: ['ignore', log, log],
  })
}

/** Returns the complete lines after the offset. */
function linesAfter(path: string, offset: number): Buffer {
  const rest = readFileSync(path).subarray(offset)
  return rest.subarray(0, rest.lastIndexOf('\n') + 1)
}

async function endProcess(child: ChildProcess, ended: AbortSignal): Promise<void> {
  child.kill('SIGTERM')
  await sleep(politeMs, undefined, { signal: ended }).catch(() => undefined)
  if (ended.aborted) return
  child.kill('SIGKILL')
  await sleep(politeMs, undefined, { signal: ended }).catch(() => undefined)
}

/** Opens the log for appending. Renames a large log first. */
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
