/**
 * `gatehouse dev -f`: the manifests that run in a cluster, run here, without a cluster.
 *
 * Reads and validates them with the webhook's code, runs the same hooks in process, starts what they render as local
 * processes, and follows every edit of the files.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import {
  isColoured,
  LOG_FORMATS,
  LOG_LEVELS,
  type LogFormat,
  logFormatFor,
  type LogLevelName,
} from '../../../schemas/index.ts'
import { environment } from '../../config/index.ts'
import type { ValidateResource } from '../manifests/check.ts'
import { checkManifests, describeViolations, isOurs } from '../manifests/check.ts'
import { generatedObjects } from '../manifests/generators.ts'
import { readManifests } from '../manifests/read.ts'
import type { KubeObject } from '../local/objects.ts'
import { localEnvironment } from '../dev/environment.ts'
import { localHooks } from '../dev/local-hooks.ts'
import { Display } from '../dev/screen/display.ts'
import { lineWriter } from '../dev/screen/lines.ts'
import { ScreenWriter } from '../dev/screen/screen.ts'
import { DevSession } from '../dev/session.ts'
import { watchFiles } from '../dev/watch.ts'
import { exitCode, printError } from '../output.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { runtimeImage } from '../version.ts'
import { parsePort } from './port.ts'
import { collect } from './validate.ts'

interface Options {
  readonly filename: string[]
  readonly port: number
  readonly verbose: boolean
  readonly logFormat?: LogFormat
  readonly logLevel?: LogLevelName
}

/** How often the running servers are asked for the health of their backends. */
const refreshMs = 1000

export function addDevCommand(program: Command): void {
  program
    .command('dev')
    .summary('run manifests here, without a cluster')
    .description(
      'Runs the manifests of a cluster on this machine: validates them with the webhook’s code, runs the same\n' +
        'hooks, and starts what they render as local processes. A server runs the command in its annotation\n' +
        'gatehouse.dev/local-command in place of its image ({port} is replaced; PORT is set).',
    )
    .requiredOption('-f, --filename <path>', 'file, folder or - for standard input; repeatable', collect)
    .option('-p, --port <number>', 'port of the first VirtualMCPServer', parsePort, 4483)
    .option('-v, --verbose', 'print the output of every process', false)
    .addOption(
      new Option(
        '--log-format <format>',
        'log lines of --verbose as text for people or JSON; default: text on a terminal',
      ).choices(LOG_FORMATS),
    )
    .addOption(
      new Option('--log-level <level>', 'least level of the log lines of --verbose').choices(LOG_LEVELS),
    )
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse dev -f manifests/examples/quickstart\n' +
        '\nExit codes: 0 stopped by a signal, 1 the manifests are invalid, 2 wrong usage or unreadable input.',
    )
    .action(async (options: Options) => {
      process.exitCode = await dev(options)
    })
}

async function dev(options: Options): Promise<number> {
  const { hooks, validate } = await localHooks()
  const input = once(() => readFileSync(0, 'utf8'))
  const first = load(options.filename, validate, input)
  if (first.docs.length === 0 && !first.problems) throw nothingToRun(options.filename)
  if (first.problems) {
    printError(first.problems)
    return exitCode.failed
  }
  const writer = new ScreenWriter({
    terminal: process.stdout.isTTY,
    colour: process.stdout.isTTY && process.stdout.hasColors(),
  })
  const shownLine = lineWriter({
    format: logFormatFor(options.logFormat, process.stderr),
    colour: isColoured(process.stderr, environment()),
    level: options.logLevel ?? 'debug',
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-dev-'))
  const title = `gatehouse dev · ${options.filename.join(' ')}`
  const display = new Display({ title, writer, onError: failure })
  const redraw = () => display.redraw(session)
  const session = new DevSession({
    hooks,
    port: options.port,
    runtimeImage,
    folder,
    ...localEnvironment(options.logLevel),
    onChange: redraw,
    onLine(workload, line) {
      const shown = options.verbose ? shownLine(line) : undefined
      if (shown !== undefined) printError(`[${workload.metadata.name}] ${shown}`)
    },
    onError: failure,
  })
  const reload = async () => {
    const next = tried(() => load(options.filename, validate, input))
    display.problems = next.problems
    if (!next.problems) await session.declare(next.docs)
    redraw()
  }
  const timer = setInterval(redraw, refreshMs)
  const stopWatching = await watchFiles(
    options.filename.filter((path) => path !== '-'),
    { onChange: () => void reload().catch(failure), onError: failure },
  )
  try {
    await session.declare(first.docs)
    await signalled()
  } finally {
    clearInterval(timer)
    await stopWatching()
    await session.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return exitCode.ok
}

interface Loaded {
  readonly docs: KubeObject[]
  readonly problems: string
}

/** Reads and checks the manifests. Throws INVALID_CONFIG for what cannot be read. */
function load(paths: readonly string[], validate: ValidateResource, input: () => string): Loaded {
  const manifests = readManifests(paths, input)
  const problems = describeViolations(checkManifests(manifests, { validate }))
  const ours = manifests.some(isOurs)
  const docs = ours ? manifests.map(({ doc }) => doc as KubeObject) : []
  return { docs: ours ? [...docs, ...generatedObjects(paths)] : [], problems }
}

/** While servers run, what cannot be read is a problem like any other. */
function tried(read: () => Loaded): Loaded {
  try {
    return read()
  } catch (error) {
    return { docs: [], problems: messageOf(error) }
  }
}

function nothingToRun(paths: readonly string[]): GatehouseError {
  const detail =
    `${paths.join(', ')}: no resource of gatehouse.dev in it. The configuration of an MCP client becomes manifests by ` +
    `"gatehouse import ${paths[0] ?? ''} --save FOLDER", or runs at once by "gatehouse run --from ${paths[0] ?? ''}".`
  return new GatehouseError('INVALID_CONFIG', { detail })
}

function once(read: () => string): () => string {
  let text: string | undefined
  return () => (text ??= read())
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
    process.once('SIGHUP', () => resolve())
  })
}

function failure(error: unknown): void {
  printError(`gatehouse dev: ${messageOf(error)}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
