/** `gatehouse down` stops `gatehouse up`, restores the clients' files, and removes the start at login. */
import { invalidConfig } from '../../../schemas/index.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { loginStart } from './login/at-login.ts'
import { processEnded } from './instance/background.ts'
import { askInstance } from './instance/control.ts'
import { becomeInstance, endInstance, type Instance, runningInstance } from './instance/instance.ts'
import { restoreFiles, restoreLines } from './restore.ts'
import { UpState } from './state.ts'

/** Returns the exit code. */
export async function runDown({ json }: { readonly json: boolean }): Promise<number> {
  const host = thisHost()
  const state = new UpState(host)
  const unit = loginStart(host).remove()
  const instance = runningInstance(state.folder)
  if (instance) await stopInstance(instance)
  const hasState = state.readSettings() !== undefined || state.journal.read().length > 0
  const reports = hasState ? await restoreAlone(state) : []
  if (json) {
    printJson({
      schema: 'gatehouse.dev/down/v1',
      stopped: instance?.pid ?? null,
      files: reports,
      loginStart: unit ?? null,
    })
  } else {
    if (instance) print(`Stopped gatehouse up (process ${instance.pid}).`)
    if (unit !== undefined) print(`Removed the start at login: ${unit}`)
    for (const line of restoreLines(reports, host)) print(line)
    if (!instance && !hasState && unit === undefined)
      print('gatehouse up is not running, and no client’s file is changed.')
  }
  const failed = reports.filter(({ outcome }) => outcome === 'failed')
  if (failed.length > 0) printError('Fix the files above and run gatehouse down again.')
  return failed.length > 0 ? exitCode.failed : exitCode.ok
}

/** Restores the files while no `gatehouse up` can start. */
async function restoreAlone(state: UpState): ReturnType<typeof restoreFiles> {
  state.create()
  becomeInstance(state.folder)
  try {
    const reports = await restoreFiles(state)
    state.clear()
    return reports
  } finally {
    endInstance(state.folder)
  }
}

const politeMs = 15_000
const forcedMs = 5_000

async function stopInstance(instance: Instance): Promise<void> {
  const { pid } = instance
  try {
    await askInstance(instance, 'POST', 'stop')
  } catch {
    // The instance is still starting, or hangs.
    kill(pid, 'SIGTERM')
  }
  if (await processEnded(pid, politeMs)) return
  kill(pid, 'SIGKILL')
  if (!(await processEnded(pid, forcedMs))) throw invalidConfig(`process ${pid} does not stop`)
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended.
  }
}
