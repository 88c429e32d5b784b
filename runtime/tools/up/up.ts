/**
 * `gatehouse up` starts the servers of the user's MCP clients behind one address, and connects the clients to it.
 *
 * In the foreground, Ctrl-C stops the servers and restores the clients' files, as `gatehouse down` does. In the
 * background, a signal only stops the servers: the files stay changed until `gatehouse down`.
 */
import { invalidConfig } from '../../../schemas/index.ts'
import { type Host, isClientId, printableName } from '../../toolkit/clients/index.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import { referenceLookup, type ReferenceLookup } from '../../toolkit/client-files/references.ts'
import { choosePort, isFree } from '../../toolkit/local/processes/ports.ts'
import { verboseLine } from '../../toolkit/local/screen/lines.ts'
import { canPrompt, confirm } from '../../toolkit/terminal/ask.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { runDown } from './down.ts'
import { loginStart } from './login/at-login.ts'
import { runInBackground } from './instance/background.ts'
import {
  alreadyRunning,
  becomeInstance,
  endInstance,
  publishProgress,
  runningInstance,
} from './instance/instance.ts'
import { loginSettings, type UpLoginOptions } from './identity/options.ts'
import { findFiles, type FoundFile, makePlan, type PlanOptions, readClientFile, type UpPlan } from './plan.ts'
import { planLines, previewLines } from './preview.ts'
import { reportLines, type UpReport } from './report.ts'
import { restoreFiles, restoreLines } from './restore.ts'
import { serveUntilStopped } from './serve.ts'
import { settingsFor, knownVariables } from './settings.ts'
import { shareLines } from './share.ts'
import { type UpSettings, UpState } from './state.ts'

export interface UpOptions extends PlanOptions, UpLoginOptions {
  readonly yes: boolean
  readonly dryRun: boolean
  readonly json: boolean
  readonly background: boolean
  readonly atLogin: boolean
  /** Repeats the confirmed choices, in the process that runs in the background. */
  readonly resume: boolean
  readonly port?: number
  readonly startTimeout: number
  readonly whileRunning: boolean
  readonly verbose: boolean
}

/** Returns the exit code. */
export async function runUp(options: UpOptions): Promise<number> {
  const host = thisHost()
  const login = loginSettings(options, host)
  const state = new UpState(host)
  const running = runningInstance(state.folder)
  if (running && !options.dryRun) throw alreadyRunning(running)
  if (options.resume) return resume(options, host, state)
  const lookup = referenceLookup(host.env)
  const files = await findFiles(options, host, state)
  const plan = await makePlan(files, options, host, lookup)
  if (plan.chosen.length === 0 && plan.skipped.length === 0) return nothingFound(files)
  const lines = planLines(plan, host)
  if (options.dryRun) return showPreview(plan, { ...options, host, state, lines })
  if (plan.chosen.length === 0) {
    for (const line of lines) printError(line)
    printError('None of the servers can run.')
    return exitCode.failed
  }
  if (!options.yes) {
    if (!canPrompt())
      throw invalidConfig(
        'without a terminal, gatehouse up cannot ask for confirmation before it changes files: use --yes',
      )
    for (const line of lines) printError(line)
    if (!(await confirm('Start the servers and change these files? [y/N] '))) {
      printError('Nothing was changed.')
      return exitCode.failed
    }
    // Another instance may have started while the prompt was open.
    const other = runningInstance(state.folder)
    if (other) throw alreadyRunning(other)
  }
  const port = await choosePort(options.port)
  state.create()
  const settings = settingsFor(plan, {
    port,
    login,
    startTimeout: options.startTimeout,
    variables: options.atLogin ? knownVariables(plan.chosen, lookup) : {},
  })
  state.writeSettings(settings)
  setLoginStart(host, options)
  if (options.background || options.atLogin)
    return runInBackground(state, {
      ...options,
      show: (report) => showReport(plan, report, { ...options, settings }),
      undo: () => runDown(options),
    })
  return serveHere({ plan, settings, lookup, host, state }, options)
}

/** Without `--at-login`, removes the autostart of an earlier run, because its choices are replaced. */
function setLoginStart(host: Host, { atLogin }: UpOptions): void {
  if (atLogin) loginStart(host).install()
  else if (loginStart(host).remove() !== undefined)
    printError('Removed the autostart at login; pass --at-login to keep it.')
}

interface Work {
  readonly plan: UpPlan
  readonly settings: UpSettings
  readonly lookup: ReferenceLookup
  readonly host: Host
  readonly state: UpState
}

/** Serves in this process. In the foreground, restores the clients' files on exit. */
async function serveHere(work: Work, options: UpOptions): Promise<number> {
  const { state, host, plan } = work
  const { whileRunning } = options
  const stop = new AbortController()
  void stopSignal(stop, ['SIGINT', 'SIGTERM', 'SIGHUP'])
  if (!options.json) printError(startingLine(plan))
  const shown = verboseLine({ verbose: options.verbose })
  const showProgress = options.json ? () => {} : progressPrinter()
  let published = ''
  becomeInstance(state.folder)
  try {
    const wasServed = await serveUntilStopped({
      ...work,
      stop,
      whileRunning,
      onLine: shown,
      onStarting(starting) {
        showProgress(starting)
        if (starting.join() === published) return
        published = starting.join()
        publishProgress(state.folder, { starting })
      },
      onReady(report) {
        // The log of a background process must not contain the console's token or the key of a link.
        const printed = options.resume ? withoutKeys(report) : report
        showReport(plan, printed, { ...options, settings: work.settings })
        if (!options.resume && report.url !== '') printError('Press Ctrl-C to stop and to restore the files.')
      },
    })
    return wasServed ? exitCode.ok : exitCode.failed
  } finally {
    // `gatehouse down` restores the files itself.
    if (!options.resume && stop.signal.reason !== 'down') {
      for (const line of restoreLines(await restoreFiles(state, { host, whileRunning }), host))
        printError(line)
      state.clear()
    }
    stop.abort()
    endInstance(state.folder)
  }
}

/** Repeats the confirmed choices without a prompt. New servers in the clients' files stay there. */
async function resume(options: UpOptions, host: Host, state: UpState): Promise<number> {
  const settings = state.readSettings()
  if (!settings) throw invalidConfig('there is nothing to resume; run gatehouse up')
  const { port } = settings
  if (!(await isFree(port))) {
    printError(`Port ${port} is in use by another program. Run gatehouse up to use another port.`)
    return exitCode.failed
  }
  const lookup = referenceLookup({ ...host.env, ...settings.variables })
  const files: FoundFile[] = []
  for (const source of settings.sources) {
    const { client, file } = source
    if (isClientId(client) && source.scope !== 'file')
      files.push(readClientFile({ ...source, client }, state))
    else files.push(...(await findFiles({ from: [file] }, host, state)))
  }
  const known = new Set(settings.servers.map(({ file, name }) => JSON.stringify([file, name])))
  const confirmed = files.map((file) => ({
    ...file,
    entries: file.entries.filter(({ name }) => known.has(JSON.stringify([file.file, name]))),
  }))
  const plan = await makePlan(confirmed, { from: [], only: [], except: [], connect: [], port }, host, lookup)
  const skipped = [...plan.skipped, ...settings.skipped]
  return serveHere({ plan: { ...plan, skipped }, settings, lookup, host, state }, options)
}

function startingLine({ conversion }: UpPlan): string {
  return `Starting ${conversion.members.map(({ metadata }) => metadata.name).join(', ')} …`
}

function nothingFound(files: readonly FoundFile[]): number {
  for (const { file, error } of files) if (error !== undefined) printError(`${file}: ${error}`)
  printError('No MCP servers found. See gatehouse client list --all, or name a file with --from FILE.')
  return exitCode.failed
}

interface PreviewOptions extends UpOptions {
  readonly host: Host
  readonly state: UpState
  readonly lines: readonly string[]
}

function showPreview(plan: UpPlan, { json, port, host, state, lines }: PreviewOptions): number {
  const changes = previewLines(plan, { port, host, state })
  if (json) {
    printJson({
      schema: 'gatehouse.dev/up-preview/v1',
      servers: [
        ...plan.conversion.members.map(({ metadata }) => ({ name: metadata.name, state: 'would run' })),
        ...plan.skipped.map(({ name, why }) => ({ name, state: 'skipped', reason: why })),
      ],
      files: changes.map(({ client, file, diff, error }) => ({
        client,
        file,
        ...(error ? { error } : { diff }),
      })),
    })
  } else {
    for (const line of lines) print(line)
    for (const { text } of changes) print(text)
    print('Nothing was changed.')
  }
  return codeOf(plan.skipped.length > 0 || changes.some(({ error }) => error !== undefined))
}

function withoutKeys(report: UpReport): UpReport {
  const login = report.login && { ...report.login, link: null }
  return { ...report, console: null, login }
}

function showReport(
  plan: UpPlan,
  report: UpReport,
  { json, settings }: UpOptions & { readonly settings: UpSettings },
): number {
  if (json) printJson(report)
  else {
    print(foundLine(plan))
    for (const line of [...reportLines(report), ...shareLines(report, settings)]) print(line)
  }
  const isPartial =
    report.url === '' ||
    report.servers.some(({ state }) => state === 'skipped' || state === 'failed') ||
    report.clients.some(({ state }) => state !== 'connected')
  return codeOf(isPartial)
}

function codeOf(isPartial: boolean): number {
  return isPartial ? exitCode.failed : exitCode.ok
}

function foundLine(plan: UpPlan): string {
  return planLines(plan, undefined)[0] ?? ''
}

/** Time in milliseconds before the first line and between lines. Most servers respond earlier, so nothing is printed. */
const quietMs = 5000

/** Returns a function that prints the names of the servers that have not responded yet. Skips unchanged names. */
function progressPrinter(): (names: readonly string[]) => void {
  let quietUntil = performance.now() + quietMs
  let printed = ''
  return (names) => {
    const text = names.map(printableName).join(', ')
    if (text === '' || text === printed || performance.now() < quietUntil) return
    printed = text
    quietUntil = performance.now() + quietMs
    printError(`Waiting for ${text} …`)
  }
}
