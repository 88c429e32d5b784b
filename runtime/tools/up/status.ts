/**
 * The commands `gatehouse status` and `gatehouse restart`, which send requests to the running `gatehouse up` process.
 */
import { invalidConfig, isFields, nearest } from '../../../schemas/index.ts'
import { isClientId, printableName } from '../../toolkit/clients/index.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { withSuggestion } from '../../toolkit/terminal/plain-text.ts'
import { askInstance, pathAbout } from './instance/control.ts'
import { type Instance, runningInstance } from './instance/instance.ts'
import { findFiles } from './plan.ts'
import { reportLines, titleOf, type UpReport } from './report.ts'
import { shareLines } from './share.ts'
import { UpState } from './state.ts'

/** Returns the exit code: 0 when every server is ready. */
export async function showStatus({ json }: { readonly json: boolean }): Promise<number> {
  const host = thisHost()
  const state = new UpState(host)
  const instance = runningInstance(state.folder)
  if (!instance) {
    const files = state.journal.read()
    if (json) printJson({ schema: 'gatehouse.dev/up/v1', pid: null, files: files.map(({ file }) => file) })
    else print('gatehouse up is not running.')
    if (files.length > 0)
      printError(
        `${files.length === 1 ? 'A client’s file still uses' : 'Clients’ files still use'} its address. Run gatehouse up, or restore with gatehouse down.`,
      )
    return exitCode.failed
  }
  const report = (await askInstance(instance, 'GET', 'status')) as UpReport
  const fresh = await newServers(state, report)
  if (json) printJson({ ...report, newServers: fresh })
  else {
    print(`gatehouse up is running (process ${report.pid}).`)
    const settings = state.readSettings()
    for (const line of [...reportLines(report), ...shareLines(report, settings)]) print(line)
    for (const { client, name } of fresh)
      print(`New in ${titleOf(client)}: ${printableName(name)}. To add it: gatehouse down, then gatehouse up`)
  }
  return report.servers.every(({ state: phase }) => phase === 'ready') ? exitCode.ok : exitCode.failed
}

/** Returns the servers that were added to a connected client's file since `gatehouse up`. */
async function newServers(state: UpState, { clients, servers }: UpReport) {
  const connected = clients.flatMap(({ client, state: phase }) =>
    phase === 'connected' && isClientId(client) ? [client] : [],
  )
  const skipped = new Set(servers.filter(({ state: phase }) => phase === 'skipped').map(({ name }) => name))
  const known = new Set(
    (state.readSettings()?.servers ?? []).map(({ file, name }) => JSON.stringify([file, name])),
  )
  const files =
    connected.length > 0 ? await findFiles({ from: [...new Set(connected)] }, thisHost(), state) : []
  return files.flatMap(({ client, file, entries, parkedNames }) =>
    entries
      .filter(({ target, enabled }) => enabled && target.kind !== 'unusable')
      .filter(
        ({ name }) =>
          !skipped.has(name) && !parkedNames.includes(name) && !known.has(JSON.stringify([file, name])),
      )
      .map(({ name }) => ({ client, file, name })),
  )
}

/** Returns the exit code. */
export async function restartServer(name: string | undefined): Promise<number> {
  const state = new UpState(thisHost())
  const instance = runningInstance(state.folder)
  if (!instance) throw invalidConfig('gatehouse up is not running')
  if (name === undefined)
    throw invalidConfig(`NAME is missing; servers: ${(await namesOf(instance)).join(', ')}`)
  const answer = await askInstance(instance, 'POST', pathAbout('restart', name))
  if (!isFields(answer) || answer['found'] !== true) {
    const names = await namesOf(instance)
    const hint = withSuggestion(nearest(name, names), `servers: ${names.join(', ')}`)
    throw invalidConfig(`no running server ${name}; ${hint}`)
  }
  print(`Restarted ${name}.`)
  return exitCode.ok
}

async function namesOf(instance: Instance): Promise<readonly string[]> {
  const { servers } = (await askInstance(instance, 'GET', 'status')) as UpReport
  return servers.filter(({ state }) => state !== 'skipped').map(({ name }) => name)
}
