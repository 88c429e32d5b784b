/**
 * `gatehouse lock` writes backends' definitions as MCPToolLocks for review in git, and checks backends against their
 * locks.
 *
 * Before writing, the command lists each backend twice, because a lock cannot cover definitions that vary between
 * lists.
 */
import { apiVersion, formatViolations, invalidConfig, type ToolLockSpec } from '../../../schemas/index.ts'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defaultSettings, validateResource } from '../../../hooks/index.ts'
import { environment } from '../../config/index.ts'
import { silentLog } from '../../net/index.ts'
import { type SurveyedBackend, surveyBackends } from '../../vmcp/index.ts'
import { type CheckedLock, checkBackend, checkReport, checkText, isInSync } from './check.ts'
import { lockSpec, manifestText, offeredIn } from './manifest.ts'
import { lockedPages, writePages } from './pages.ts'
import { surveyConfig, type LockTarget, targetsOf, type UnlistedBackend } from './targets.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { backendNames } from '../../toolkit/targets/down.ts'
import {
  type RunningServer,
  runningHint,
  runningServer,
  runningServerAt,
  runningServers,
  runningNames,
} from '../../toolkit/targets/running.ts'
import { refuseIdle, collect } from '../../toolkit/terminal/options.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { readManifests } from '../../toolkit/manifests/read.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { readToken } from '../../toolkit/terminal/token-file.ts'
import { visibleText } from '../../observe/index.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'

interface Options {
  readonly filename: string[]
  readonly output?: string
  readonly url: ReadonlyMap<string, string>
  readonly bearerTokenFile?: string
  readonly check: boolean
  readonly format: 'text' | 'json'
}

export function addLockCommand(program: Command): void {
  program
    .command('lock')
    .summary('write or check locks for approved backend definitions (MCPToolLock)')
    .description(
      'Reads the tools, prompts, resource templates, instructions and pages from the backends in manifests, and writes\n' +
        'one MCPToolLock per backend. Reads the tools of an MCPOpenAPIServer from its OpenAPI document. With --check,\n' +
        'compares them with the locks in the manifests.',
    )
    .addArgument(
      new NamedArgument(
        '[NAME...]',
        'servers started by "gatehouse up", "run" or "dev"; a virtual server selects all its servers',
        runningNames,
      ),
    )
    .option(
      '-f, --filename <path>',
      'manifest file, folder, or - for standard input; repeatable',
      collect,
      [],
    )
    .option('-o, --output <folder>', 'folder for the locks (default: print them)')
    .option(
      '--url <name=url>',
      'name and URL of a backend; overrides the URL in its manifest, if there is one; repeatable',
      collectUrl,
      new Map(),
    )
    .option('--bearer-token-file <file>', 'file that contains a bearer token for the backends')
    .option('--check', 'compare with the locks without writing', false)
    .addOption(
      new Option('--format <format>', 'output format of --check').choices(['text', 'json']).default('text'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse lock -f manifests/ -o locks/\n  gatehouse lock -f manifests/ -f locks/ --check\n' +
        '  gatehouse lock notes > notes-lock.yaml\n  gatehouse lock --url notes=http://127.0.0.1:9000/mcp\n' +
        '\nExit codes: 0 written, or in sync; 1 a backend differs from its lock; 2 invalid usage, or an unreadable lock or backend.',
    )
    .action(async (names: string[], typed: Options, command: Command) => {
      const { urls, remote } = await membersOf(names)
      const options = { ...typed, url: new Map([...urls, ...typed.url]) }
      refuseIdle(command, [
        ['output', !options.check, 'has no effect with --check; specify the folder of the locks with -f'],
        ['format', options.check, 'has no effect without --check'],
      ])
      process.exitCode = await lock(options, remote)
    })
}

function collectUrl(value: string, before: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, name = '', url = ''] = /^([^=]+)=(.+)$/.exec(value) ?? []
  if (name === '' || !URL.canParse(url)) throw new InvalidArgumentError('must be NAME=URL')
  return new Map([...before, [name, url]])
}

interface Members {
  readonly urls: ReadonlyMap<string, string>
  /** Names of members that do not run on this machine. */
  readonly remote: readonly string[]
}

/** Returns the addresses of the named servers. The name of a virtual server selects its members. */
async function membersOf(names: readonly string[]): Promise<Members> {
  const servers = runningServers()
  const remote: string[] = []
  const found: RunningServer[] = []
  for (const name of names) {
    const server = runningServer(name)
    if (!server) throw invalidConfig(`no server named ${name}; ${runningHint({ wanted: name })}`)
    if (server.kind !== 'VirtualMCPServer') found.push(server)
    else {
      const own = servers.filter(({ kind, session }) => session === server.session && kind !== server.kind)
      found.push(...own)
      const backends = await backendNames(new URL(server.url))
      if (!backends)
        throw invalidConfig(`${name}: does not report its backends; see gatehouse doctor ${name}`)
      remote.push(...backends.filter((backend) => !own.some((member) => member.name === backend)))
    }
  }
  // If a name has several addresses, the first is that of the proxy in front of the server.
  return { urls: new Map(found.toReversed().map(({ name, url }) => [name, url])), remote }
}

async function lock(options: Options, remote: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-lock-'))
  try {
    return await lockWith(options, remote, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Allows REST services on this machine, as `gatehouse dev` does. */
const settings = { ...defaultSettings, allowLoopback: true }

/** `folder` is for temporary files. */
async function lockWith(options: Options, remote: readonly string[], folder: string): Promise<number> {
  const manifests = readManifests(options.filename, standardText)
  const {
    targets,
    unreachable: unaddressed,
    undocumented,
    locks,
    folders,
  } = targetsOf(manifests, options.url, (doc) => validateResource(doc, { settings }).violations)
  for (const { backend, message } of undocumented) printError(`${backend}: is not locked: ${message}`)
  const targetNames = new Set(targets.map(({ name }) => name))
  const unreachable = [...new Set([...unaddressed, ...remote.filter((name) => !targetNames.has(name))])]
  for (const name of unreachable) printError(`${name}: ${noAddress}; set --url ${name}=URL`)
  if (targets.length === 0 && undocumented.length === 0)
    throw invalidConfig(
      `no backend to lock: add the NAME of a server, -f with manifests, or --url NAME=URL; ${runningHint()}`,
    )
  const { bearerTokenFile } = options
  const given = bearerTokenFile === undefined ? undefined : readToken('--bearer-token-file', bearerTokenFile)
  const tokenFor = (url: string) => runningServerAt(new URL(url))?.token ?? given
  const { config, variables } = surveyConfig(targets, tokenFor, folder)
  warnOfHeaders(targets)
  const env = { ...environment(), ...variables }
  const morePages = (backend: string) =>
    locks.flatMap(({ backendRef, pages = [] }) =>
      backendRef.name === backend ? pages.map(({ uri }) => uri) : [],
    )
  const survey = () => surveyBackends(config, { env, version, log: silentLog, morePages })
  const seen = await survey()
  const failed = seen.filter(({ listing }) => !listing)
  for (const { backend, error } of failed)
    printError(`${backend}: cannot list its definitions: ${error?.message ?? 'unknown'}`)
  const unlisted: UnlistedBackend[] = [
    ...undocumented,
    ...failed.map(({ backend, error }) => ({ backend, message: error?.message ?? 'unknown' })),
    ...unreachable.map((backend) => ({
      backend,
      message: noAddress,
    })),
  ]
  const listed = pairs(targets, seen)
  const unread = listed.flatMap(unreadPages)
  for (const { backend, message } of unread) printError(`${backend}: ${message}`)
  if (options.check) return check(listed, { locks, folders }, options.format, [...unlisted, ...unread])
  await warnOfVarying(listed, await survey())
  const isWritten = write(listed, locks, options.output)
  return unlisted.length + unread.length > 0 || !isWritten ? exitCode.usage : exitCode.ok
}

/** Warns about REST services whose tools may have arguments that the running server omits. */
function warnOfHeaders(targets: readonly LockTarget[]): void {
  for (const { name, rest } of targets)
    if (rest?.missingAuth !== undefined)
      printError(
        `${name}: MCPExternalAuthConfig ${rest.missingAuth} is not among the given files; if it sets a header other than Authorization, add it, so that the tools have no argument for this header`,
      )
}

const noAddress = 'is not locked, because it does not run on this machine and no URL is given'

interface ListedBackend extends Pick<SurveyedBackend, 'pages'> {
  readonly target: LockTarget
  readonly listing: NonNullable<SurveyedBackend['listing']>
}

function pairs(targets: readonly LockTarget[], seen: readonly SurveyedBackend[]): readonly ListedBackend[] {
  return seen.flatMap(({ backend, listing, pages }) => {
    const target = targets.find(({ name }) => name === backend)
    return target && listing ? [{ target, listing, pages }] : []
  })
}

/** Returns the listed pages that could not be read. */
function unreadPages({ target, pages }: ListedBackend): readonly UnlistedBackend[] {
  return pages.flatMap(({ uri, isListed, problem }) =>
    isListed && problem !== undefined
      ? [{ backend: target.name, message: `cannot read page ${visibleText(uri)}: ${problem}` }]
      : [],
  )
}

async function check(
  listed: readonly ListedBackend[],
  { locks, folders }: { readonly locks: readonly ToolLockSpec[]; readonly folders: readonly string[] },
  format: Options['format'],
  unlisted: readonly UnlistedBackend[],
): Promise<number> {
  const checked: CheckedLock[] = []
  for (const { target, listing, pages } of listed)
    checked.push(await checkBackend(target, listing, locks, { pages, folders }))
  for (const { backend, locked, unlockedPages } of checked)
    if (locked && unlockedPages > 0)
      printError(
        `${backend}: ${quantity(unlockedPages, 'page')} not compared: write the lock again to add pages`,
      )
  if (format === 'json') printJson(checkReport(checked, unlisted))
  else if (checked.length > 0) print(checked.map(checkText).join('\n'))
  if (unlisted.length > 0 || checked.some(({ failure }) => failure !== undefined)) return exitCode.usage
  return checked.every(isInSync) ? exitCode.ok : exitCode.failed
}

/** Warns about definitions that differ between the two lists. */
async function warnOfVarying(
  listed: readonly ListedBackend[],
  again: readonly SurveyedBackend[],
): Promise<void> {
  for (const { target, listing, pages } of listed) {
    const { listing: second, pages: secondPages = [] } =
      again.find(({ backend }) => backend === target.name) ?? {}
    if (!second) continue
    const first = lockSpec(target, offeredIn(listing), undefined, lockedPages(pages, undefined))
    const { drift, pages: varying } = await checkBackend(target, second, [first], { pages: secondPages })
    for (const { uri } of varying)
      printError(
        `${target.name}: page ${visibleText(uri)} differs between two reads: a lock cannot approve a page that varies`,
      )
    for (const { name, parts } of drift)
      printError(
        `${target.name}: ${visibleText(name) || 'instructions'} differs between two lists${parts.length > 0 ? ` (${parts.join(', ')})` : ''}: see ignore and variants in MCPToolLock`,
      )
  }
}

/** Writes the locks. Returns false after reporting a lock that could not be written. */
function write(
  listed: readonly ListedBackend[],
  locks: readonly ToolLockSpec[],
  folder: string | undefined,
): boolean {
  if (folder !== undefined) mkdirSync(folder, { recursive: true })
  let isWritten = true
  for (const { target, listing, pages } of listed) {
    reportOmitted(listing)
    const own = locks.filter(
      ({ backendRef }) => backendRef.name === target.name && backendRef.kind === target.kind,
    )
    const spec = lockSpec(target, offeredIn(listing), own[0], lockedPages(pages, own[0]?.pages))
    const problem =
      own.length > 1
        ? `it has ${own.length} locks, which a single lock would replace: merge them, or leave this backend out`
        : lockProblem(target, spec)
    if (problem !== undefined) {
      printError(`${target.name}: lock not written: ${problem}`)
      isWritten = false
      continue
    }
    const text = manifestText(target, spec)
    const tokens = Math.ceil(listing.tools.reduce((sum, { json }) => sum + json.length, 0) / 4)
    const summary = `${quantity(listing.tools.length, 'tool')}, about ${tokens} tokens in a list`
    const more = spec.pages?.length ? `, ${quantity(spec.pages.length, 'page')}` : ''
    if (folder === undefined) print(`---\n${text}`)
    else {
      const path = join(folder, `${target.name}.lock.yaml`)
      writeFileSync(path, text)
      writePages(folder, target.name, pages)
      print(`${path}: ${summary}${more}`)
    }
  }
  return isWritten
}

/** Returns the reason why the lock would be invalid, for example an excessive size or an invalid backend name. */
function lockProblem({ name }: LockTarget, spec: ToolLockSpec): string | undefined {
  const { violations } = validateResource({ apiVersion, kind: 'MCPToolLock', metadata: { name }, spec })
  return violations.length > 0 ? formatViolations(violations) : undefined
}

/** Reports invalid items, which our servers do not list and locks do not contain. */
function reportOmitted({ violations }: ListedBackend['listing']): void {
  for (const { message } of violations.problems) printError(visibleText(message))
}
