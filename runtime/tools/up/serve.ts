/**
 * Serves the confirmed servers until a signal arrives: starts them, replaces them in the clients' files, prints a
 * report, and answers `status`, `restart` and `down`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { invalidConfig } from '../../../schemas/index.ts'
import {
  type ClientEntry,
  type ClientId,
  connectionEntry,
  type Host,
  isClientId,
} from '../../toolkit/clients/index.ts'
import { parkServers, restoreServers } from '../../toolkit/client-files/park.ts'
import { whyNotChangeable } from '../../toolkit/client-files/running.ts'
import type { ReferenceLookup } from '../../toolkit/client-files/references.ts'
import {
  type MemberState,
  type SessionState,
  sessionStateOf,
} from '../../toolkit/local/screen/member-states.ts'
import { selfCommand } from '../../toolkit/terminal/self.ts'
import { publishProgress } from './instance/instance.ts'
import { serveControl } from './instance/control.ts'
import { convertServers, entranceName, type UpPlan } from './plan.ts'
import type { ClientReport, ServerReport, UpReport } from './report.ts'
import { countTools, settledState, startSession, type UpSession } from './session.ts'
import type { UpLoginParts, RunningLogin } from './identity/login.ts'
import type { LoginSettings, UpFile, UpSettings, UpState } from './state.ts'

export const entryName = 'gatehouse'

export interface ServeOptions {
  readonly plan: UpPlan
  readonly settings: UpSettings
  readonly state: UpState
  readonly host: Host
  readonly lookup: ReferenceLookup
  readonly stop: AbortController
  /** Also changes the files of clients that are running. */
  readonly whileRunning: boolean
  readonly onLine: (name: string, line: string) => void
  /** Called repeatedly with the names of the servers that have not responded yet. */
  readonly onStarting: (names: readonly string[]) => void
  /** Called once the servers' states are known and the files have been changed. */
  readonly onReady: (report: UpReport) => void
}

/** Phases in which the gateway serves the server, so that the server's entry is removed from the client's file. */
const served: ReadonlySet<string> = new Set(['ready', 'sign in'])

/**
 * Runs the servers in this instance until the instance is stopped. Resolves to true when at least one server was
 * served.
 */
export async function serveUntilStopped(options: ServeOptions): Promise<boolean> {
  const { plan, settings, state, stop } = options
  const clients = Object.fromEntries(
    settings.targets.flatMap(({ client }) =>
      isClientId(client) ? [[client, state.renewToken(client)]] : [],
    ),
  )
  // Clients start their servers in the home folder or in their own folder.
  process.chdir(options.host.home)
  const { port, startTimeout } = settings
  const login = settings.login && (await openLogin(settings.login, { port, usersFile: state.usersFile }))
  const { logs } = state
  const up = await startSession(plan.conversion, {
    port,
    startTimeout,
    clients,
    login,
    logs,
    onLine: options.onLine,
  }).catch(async (error: unknown) => {
    await login?.close()
    throw error
  })
  try {
    const names = namesIn(plan)
    const settled = await settledState(up, names, {
      startTimeout: settings.startTimeout,
      signal: stop.signal,
      onStarting: options.onStarting,
    })
    if (stop.signal.aborted) return true
    const servers = await removeFailed(up, settled, options)
    const isUsable = servers.some(({ state: phase }) => served.has(phase))
    if (!isUsable || settled.url === undefined) {
      options.onReady(await reportOf(up, settled, { servers, clients: [] }))
      return false
    }
    const changed = await changeClients(settled.url, servers, options)
    await answerUntilStopped(up, { servers, clients: changed }, options)
    return true
  } finally {
    await up.close()
    await login?.close()
  }
}

/** Loads the identity provider and its packages, which most runs do not need. */
async function openLogin(login: LoginSettings, parts: UpLoginParts): Promise<RunningLogin> {
  const { startLogin } = await import('./identity/login.ts')
  return startLogin(login, parts)
}

function namesIn({ conversion }: UpPlan): readonly string[] {
  return conversion.members.map(({ metadata }) => metadata.name)
}

/** Stops the servers that failed; their own entries stay in the clients' files. Returns the report of all servers. */
async function removeFailed(
  up: UpSession,
  { members }: SessionState,
  { plan, host, lookup }: ServeOptions,
): Promise<readonly ServerReport[]> {
  const failed = new Set(members.filter(({ phase }) => !served.has(phase)).map(({ name }) => name))
  if (failed.size > 0) {
    const kept = plan.chosen.filter((entry) => !failed.has(objectOf(entry, plan)))
    await up.declare(await convertServers(kept, host, lookup))
  }
  const servers = [
    ...members.map((member) => reportOn(member, failed.has(member.name) ? 'skipped' : member.phase)),
    ...plan.skipped.map(({ name, why }): ServerReport => ({ name, state: 'skipped', reason: why })),
  ]
  up.publishSkipped(
    servers
      .filter((server) => server.state === 'skipped')
      .map(({ name, reason: why = 'it failed', nextStep = 'correct the cause' }) => ({
        name,
        why,
        fix: `${nextStep}; then run gatehouse down and gatehouse up`,
      })),
  )
  return servers
}

function reportOn({ name, why, fix, signInUrl }: MemberState, state: ServerReport['state']): ServerReport {
  return {
    name,
    state,
    ...(why !== undefined && { reason: why }),
    ...(fix !== undefined && { nextStep: fix }),
    ...(signInUrl !== undefined && { signInUrl }),
  }
}

/** Returns the name of the object that runs the entry. */
function objectOf(entry: ClientEntry, { conversion }: UpPlan): string {
  return conversion.entries.find((converted) => converted.entry === entry)?.object?.split('/')[1] ?? ''
}

/** Replaces the served entries in each client's file with the gateway's entry. */
async function changeClients(
  url: string,
  servers: readonly ServerReport[],
  { plan, settings, state, host, whileRunning, stop }: ServeOptions,
): Promise<readonly ClientReport[]> {
  const running = new Set(servers.filter((server) => served.has(server.state)).map(({ name }) => name))
  const reports: ClientReport[] = []
  for (const target of settings.targets) {
    if (stop.signal.aborted) break
    const own = plan.chosen.filter(
      (entry) => entry.source.file === target.file && running.has(objectOf(entry, plan)),
    )
    reports.push(
      await changeClient(target, { url, names: own.map(({ name }) => name), state, host, whileRunning }),
    )
  }
  await restoreOthers(settings, state, (client) =>
    whileRunning ? undefined : whyNotChangeable(client, host, 'down'),
  )
  return reports
}

/** Restores files from an earlier run, whose clients are no longer connected. */
async function restoreOthers(
  { targets }: UpSettings,
  { journal, records }: UpState,
  whyNot: (client: ClientId) => string | undefined,
): Promise<void> {
  const others = journal.read().filter(({ file }) => !targets.some((target) => target.file === file))
  for (const parked of others) {
    if (whyNot(parked.client) !== undefined) continue
    // A file that cannot be restored now stays in the journal, and `gatehouse down` reports it.
    await restoreServers(parked, { journal, records, name: entryName }).catch(() => undefined)
  }
}

interface ClientChange {
  readonly url: string
  readonly names: readonly string[]
  readonly state: UpState
  readonly host: Host
  readonly whileRunning: boolean
}

async function changeClient(
  target: UpFile,
  { url, names, state, host, whileRunning }: ClientChange,
): Promise<ClientReport> {
  const { client, file } = target
  try {
    if (!isClientId(client)) throw invalidConfig('not the file of a known client')
    const why = whileRunning ? undefined : whyNotChangeable(client, host, 'up')
    if (why !== undefined) throw invalidConfig(why)
    const entry = gatewayEntry(client, url, state)
    const { journal, records } = state
    await parkServers({ ...target, client }, { entry, servers: names }, { journal, records, name: entryName })
    return { client, file, state: 'connected' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { client, file, state: 'not changed', reason }
  }
}

/**
 * Returns the gateway's entry for a client. The entry starts a bridge, which reads the client's token from a file that
 * only its owner can read. The clients' own files may be readable by other users.
 */
export function gatewayEntry(
  client: Parameters<typeof connectionEntry>[0]['client'],
  url: string,
  state: UpState,
): Readonly<Record<string, unknown>> {
  const token = ['--remote-auth-bearer-token-file', state.tokenFile(client)]
  const program = [...selfCommand(), 'proxy', 'stdio', url, ...token]
  return connectionEntry({ client, name: entryName, url, program })
}

type Results = Pick<UpReport, 'servers' | 'clients'>

async function answerUntilStopped(up: UpSession, results: Results, options: ServeOptions): Promise<void> {
  const { state, stop } = options
  const names = results.servers.filter((server) => served.has(server.state)).map(({ name }) => name)
  const report = async () => reportOf(up, await sessionStateOf(up.session, names), results)
  const control = await serveControl({
    status: report,
    restart: (name) => up.session.restart(name),
    accounts: up.login?.accounts,
    endLogins: () => endLogins(up, stop.signal),
    stop: () => stop.abort('down'),
  })
  try {
    const first = await report()
    publishProgress(state.folder, { control: control.address })
    options.onReady(first)
    if (!stop.signal.aborted)
      await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }))
  } finally {
    await control.close()
  }
}

const restartMs = 30_000
const pollMs = 200

/**
 * Ends all logins by restarting the virtual server, which stores them in memory. Resolves when the virtual server is
 * listening again.
 */
async function endLogins(up: UpSession, signal: AbortSignal): Promise<void> {
  await up.session.restart(entranceName)
  for (const until = performance.now() + restartMs; performance.now() < until && !signal.aborted; ) {
    if ((await sessionStateOf(up.session, [])).url !== undefined) return
    await sleep(pollMs, undefined, { signal }).catch(() => undefined)
  }
}

async function reportOf(
  { session, login }: UpSession,
  { url = '', consoleUrl, members }: SessionState,
  { servers, clients }: Results,
): Promise<UpReport> {
  const now = new Map(members.map((member) => [member.name, member]))
  return {
    schema: 'gatehouse.dev/up/v1',
    pid: process.pid,
    url: login && url !== '' ? login.address : url,
    login: login ? { issuer: login.issuer ?? null, link: login.accounts?.ownerLink() ?? null } : null,
    console: consoleUrl ?? null,
    tools: url === '' ? null : await countTools(url, session.token),
    servers: servers.map((server) => {
      const member = served.has(server.state) ? now.get(server.name) : undefined
      return member ? reportOn(member, member.phase) : server
    }),
    clients,
  }
}
