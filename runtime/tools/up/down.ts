/** `gatehouse down` stops `gatehouse up`, restores the clients' files, and removes the autostart at login. */
import { invalidConfig } from '../../../schemas/index.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { loginStart } from './login/at-login.ts'
import { instanceEnded } from './instance/background.ts'
import { askInstance } from './instance/control.ts'
import {
  becomeInstance,
  endInstance,
  type Instance,
  instanceFile,
  runningInstance,
} from './instance/instance.ts'
import { restoreFiles, restoreLines, type RestoreOptions, type RestoreReport } from './restore.ts'
import { UpState } from './state.ts'

export interface DownOptions {
  readonly json: boolean
  readonly whileRunning: boolean
}

/** Returns the exit code. */
export async function runDown({ json, whileRunning }: DownOptions): Promise<number> {
  const host = thisHost()
  const state = new UpState(host)
  const unit = loginStart(host).remove()
  const instance = runningInstance(state.folder)
  if (instance) await stopInstance(instance, state)
  const hasState = state.exists()
  const reports = hasState ? await restoreAlone(state, { host, whileRunning }) : []
  if (json) {
    printJson({
      schema: 'gatehouse.dev/down/v1',
      stopped: instance?.pid ?? null,
      files: reports,
      loginStart: unit ?? null,
    })
  } else {
    if (instance) print(`Stopped gatehouse up (process ${instance.pid}).`)
    if (unit !== undefined) print(`Removed the autostart at login: ${unit}`)
    for (const line of restoreLines(reports, host)) print(line)
    if (!instance && reports.length === 0 && unit === undefined)
      print('gatehouse up is not running, and no client’s file is changed.')
  }
  const failed = reports.filter(({ outcome }) => outcome === 'failed')
  if (failed.length > 0) printError('Fix the files above and run gatehouse down again.')
  return failed.length > 0 ? exitCode.failed : exitCode.ok
}

/** Restores the files while no `gatehouse up` can start. */
async function restoreAlone(state: UpState, options: RestoreOptions): Promise<readonly RestoreReport[]> {
  state.create()
  becomeInstance(state.folder)
  try {
    const reports = await restoreFiles(state, options)
    state.clear()
    return reports
  } finally {
    endInstance(state.folder)
  }
}

const politeMs = 15_000
const forcedMs = 5_000

async function stopInstance(instance: Instance, { folder }: UpState): Promise<void> {
  const { pid, startedAt } = instance
  try {
    await askInstance(instance, 'POST', 'stop')
  } catch {
    // The process id may belong to another program by now.
    if (startedAt === null)
      throw invalidConfig(
        `process ${pid} does not answer and may be another program: stop it, or remove ${instanceFile(folder)}`,
      )
    // The instance is still starting, or hangs.
    kill(pid, 'SIGTERM')
  }
  if (await instanceEnded(instance, politeMs)) return
  kill(pid, 'SIGKILL')
  if (!(await instanceEnded(instance, forcedMs))) throw invalidConfig(`process ${pid} does not stop`)
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended.
  }
}
