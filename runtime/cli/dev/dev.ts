/**
 * Runs `gatehouse dev`: reads and checks the manifests, and runs them in a session. Applies every edit, draws the
 * screen, and prints a summary when the session ends.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { invalidConfig } from '../../../schemas/index.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import type { LocalObject } from '../../toolkit/manifests/objects.ts'
import {
  type ValidateResource,
  checkManifests,
  describeViolations,
  isOurs,
} from '../../toolkit/manifests/check.ts'
import { generatedObjects } from '../../toolkit/manifests/generators.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { readManifests } from '../../toolkit/manifests/read.ts'
import { exitCode, print, printError } from '../../toolkit/terminal/output.ts'
import { runtimeImage } from '../../toolkit/terminal/self.ts'
import { localEnvironment } from '../../toolkit/local/environment.ts'
import { LogFiles } from '../../toolkit/local/processes/log-files.ts'
import { isFree, nextFreePort } from '../../toolkit/local/processes/ports.ts'
import { Display } from '../../toolkit/local/screen/display.ts'
import { type ProcessLogs, verboseLine } from '../../toolkit/local/screen/lines.ts'
import { ScreenWriter } from '../../toolkit/local/screen/screen.ts'
import { summaryOf } from '../../toolkit/local/screen/summary.ts'
import { DevSession, UnwritableFile } from '../../toolkit/local/session.ts'
import { watchFiles } from '../../toolkit/local/watch.ts'
import { localHooks } from '../../toolkit/local/cluster/cluster.ts'

export interface DevOptions extends ProcessLogs {
  readonly filename: readonly string[]
  readonly port: number
  readonly startTimeout: number
  readonly pinFirst?: string
}

/** Interval between reads of backend health from the running servers. */
const refreshMs = 1000

/** Returns the exit code. Throws INVALID_CONFIG when the input cannot be read or run. */
export async function runDev(options: DevOptions): Promise<number> {
  const stop = new AbortController()
  const stopped = stopSignal(stop, ['SIGINT', 'SIGTERM', 'SIGHUP'])
  const { hooks, validate } = await localHooks()
  const read = () => load(options.filename, validate)
  const first = read()
  if (first.docs.length === 0 && !first.problems) throw nothingToRun(options.filename)
  if (first.problems) {
    printError(first.problems)
    return exitCode.failed
  }
  if (options.pinFirst !== undefined && !first.docs.some(({ kind }) => kind === 'VirtualMCPServer'))
    failure(
      '--pin-first: has no effect, because the manifests contain no VirtualMCPServer whose backends could be pinned',
    )
  await refuseTakenPort(first.docs, options.port)
  const folder = sessionFolder()
  const startedAt = performance.now()
  const logs = new LogFiles(join(folder, 'logs'), (error) =>
    failure(`server output is no longer stored, so "gatehouse logs" cannot show it: ${messageOf(error)}`),
  )
  const display = new Display({
    title: `gatehouse dev · ${options.filename.join(' ')}`,
    writer: new ScreenWriter({
      terminal: process.stdout.isTTY,
      colour: process.stdout.isTTY && process.stdout.hasColors(),
      logs: logs.folder,
    }),
    onError: failure,
  })
  const show = verboseLine(options)
  const session: DevSession = new DevSession({
    hooks,
    port: options.port,
    runtimeImage,
    pinFirst: options.pinFirst === undefined ? undefined : resolve(options.pinFirst),
    folder,
    manifests: options.filename.filter((path) => path !== '-').map((path) => resolve(path)),
    startMs: options.startTimeout * 1000,
    ...localEnvironment(options.logLevel),
    onChange: (changed) => display.redraw(changed),
    onLine(workload, parent, line) {
      logs.write(parent.metadata.name, `[${workload.metadata.name}] ${line}`)
      show(workload.metadata.name, line)
    },
    onProgress(line) {
      // Prints no lines on a terminal, where the screen shows the state.
      if (!process.stdout.isTTY) printError(line)
    },
    onError: failure,
  })
  const reload = async () => {
    const next = readOrReport(read)
    display.problems = next.problems
    if (!next.problems) display.noteEdit(await session.declare(next.docs))
    display.redraw(session)
  }
  const timer = setInterval(() => display.redraw(session), refreshMs)
  const stopWatching = await watchFiles(
    options.filename.filter((path) => path !== '-'),
    { onChange: () => void reload().catch(failure), onError: failure },
  )
  try {
    await Promise.race([session.declare(first.docs), stopped])
    await stopped
  } finally {
    clearInterval(timer)
    await stopWatching()
    const summary = summaryOf(session.workloads, performance.now() - startedAt)
    await session.stop()
    await display.settled()
    logs.close()
    rmSync(folder, { recursive: true, force: true })
    print(summary)
  }
  return exitCode.ok
}

interface Loaded {
  readonly docs: LocalObject[]
  readonly problems: string
}

/** Reads and checks the manifests. Throws INVALID_CONFIG when the manifests cannot be read. */
function load(paths: readonly string[], validate: ValidateResource): Loaded {
  const manifests = readManifests(paths, standardText)
  const problems = describeViolations(checkManifests(manifests, { validate }))
  const ours = manifests.some(isOurs)
  const docs = ours ? manifests.map(({ doc }) => doc as LocalObject) : []
  return { docs: ours ? [...docs, ...generatedObjects(paths)] : [], problems }
}

/** Returns a read error as a problem to display instead of throwing it, because the servers are already running. */
function readOrReport(read: () => Loaded): Loaded {
  try {
    return read()
  } catch (error) {
    return { docs: [], problems: messageOf(error) }
  }
}

function nothingToRun(paths: readonly string[]) {
  return invalidConfig(
    `${paths.join(', ')}: no gatehouse.dev resources found. To convert the configuration of an MCP client, run ` +
      `"gatehouse import ${paths[0] ?? ''} --save FOLDER"; to run it directly, "gatehouse run --from ${paths[0] ?? ''}".`,
  )
}

/**
 * Reports an occupied port instead of choosing another port, because clients store the address in their configuration.
 */
async function refuseTakenPort(docs: readonly LocalObject[], port: number): Promise<void> {
  if (!docs.some(({ kind }) => kind === 'VirtualMCPServer') || (await isFree(port))) return
  const next = await nextFreePort(port)
  const other = next === undefined ? 'choose another port with --port' : `use --port ${next}, which is free`
  throw invalidConfig(`port ${port} is in use by another program; stop that program, or ${other}`)
}

function sessionFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'gatehouse-dev-'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw invalidConfig(new UnwritableFile(tmpdir(), code ?? messageOf(error)).message)
  }
}

function failure(error: unknown): void {
  printError(`gatehouse dev: ${messageOf(error)}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
