/**
 * `gatehouse run` serves one or more MCP servers at one address, without manifests.
 *
 * Creates in memory the manifests that `import` would write. Runs the servers as `dev` does, on the loopback interface
 * and without authentication. Standard output contains one line, the address; all other output goes to standard error.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { invalidConfig } from '../../../schemas/index.ts'
import {
  type ClientEntry,
  type ConvertedEntry,
  type ConvertOptions,
  convertEntries,
  folderFiles,
  objectName,
  printableName,
} from '../../toolkit/clients/index.ts'
import { connectClients, type Connected } from '../../toolkit/client-files/connect.ts'
import { clientNamed } from '../../toolkit/client-files/choose.ts'
import { shortPath, thisHost } from '../../toolkit/client-files/host.ts'
import { saveFolder } from '../../toolkit/client-files/save.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { localEnvironment } from '../../toolkit/local/environment.ts'
import { LogFiles } from '../../toolkit/local/processes/log-files.ts'
import { podTemplateOf } from '../../toolkit/local/pods.ts'
import { type ProcessLogs, verboseLine } from '../../toolkit/local/screen/lines.ts'
import { DevSession } from '../../toolkit/local/session.ts'
import { exitCode, print, printError } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import { runtimeImage } from '../../toolkit/terminal/self.ts'
import type { LocalObject } from '../../toolkit/manifests/objects.ts'
import { type MemberOptions, membersOf } from './members.ts'
import { referenceLookup } from '../../toolkit/client-files/references.ts'
import { documentsOf } from '../../toolkit/local/conversion.ts'
import { choosePort, defaultPort } from '../../toolkit/local/processes/ports.ts'
import { readOpenApiFile, type RestServiceOptions, withRestService } from './rest-service.ts'
import { refuseUnresolved, withEnvFiles } from './variables.ts'
import { type Missing, watchServers } from './watch.ts'
import { localHooks } from '../../toolkit/local/cluster/cluster.ts'

export interface RunCommandOptions extends MemberOptions, RestServiceOptions, ProcessLogs {
  readonly port?: number
  readonly group: string
  readonly save?: string
  readonly force: boolean
  readonly connect: readonly string[]
  readonly startTimeout: number
}

const maxLines = 10

/** Returns the exit code. */
export async function runServers(words: readonly string[], options: RunCommandOptions): Promise<number> {
  const host = thisHost()
  for (const word of options.connect) clientNamed(word)
  const local = await localHooks()
  const settings = convertOptions(options, host.home)
  const values = { env: withEnvFiles(host.env, options.envFile) }
  const document = readOpenApiFile(options)
  if (document !== undefined && options.save !== undefined)
    throw invalidConfig('--save: cannot save a REST service; write an MCPOpenAPIServer instead')
  const url = options.baseUrl === undefined ? options.url : [...options.url, options.baseUrl]
  const entries = await membersOf(words, { ...options, url }, host, values)
  const lookup = referenceLookup(values.env)
  refuseUnresolved(entries, lookup)
  const conversion = convertEntries(entries, {
    ...settings,
    resolve: lookup,
    allowLoopback: true,
    violationsOf: (manifest) => local.validate(manifest).violations,
  })
  reportSkipped(conversion.entries)
  if (conversion.members.length === 0) throw invalidConfig('none of the servers can run')
  const rest =
    document === undefined
      ? undefined
      : withRestService(conversion, document, options, (manifest) => local.validate(manifest).violations)
  if (options.save !== undefined) {
    await save(options.save, entries, settings, options.force)
    printError(
      `Saved to ${shortPath(resolve(options.save), host)}. Run it with gatehouse dev -f ${options.save}, or kubectl apply -k ${options.save}`,
    )
  }
  const port = await choosePort(options.port)
  const stop = new AbortController()
  void stopSignal(stop, ['SIGINT', 'SIGTERM', 'SIGHUP'])
  const documents = [
    ...documentsOf({ ...conversion, ...(rest && { members: rest.members }) }),
    ...(rest ? [rest.configMap] : []),
  ]
  const names = conversion.members.map(({ metadata }) => metadata.name)
  return serve(documents, { ...options, names, port, hooks: local.hooks, stop })
}

function convertOptions(
  options: RunCommandOptions,
  home: string,
): Omit<ConvertOptions, 'allowLoopback' | 'violationsOf'> {
  if (options.group !== objectName(options.group)) {
    throw invalidConfig('--group: must be a name of lower-case letters, digits and "-"')
  }
  return {
    group: options.group,
    description: 'Servers started by gatehouse run',
    incoming: { type: 'anonymous' },
    secrets: 'manifest',
    plain: new Set(),
    images: new Map(),
    keepSecretArgs: false,
    includeDisabled: false,
    prefixOne: false,
    resolve: () => undefined,
    home,
  }
}

function reportSkipped(entries: readonly ConvertedEntry[]): void {
  for (const { entry, outcome, notes } of entries) {
    if (outcome === 'not taken' || outcome === 'partly')
      printError(`${printableName(entry.name)}: ${notes.join('; ')}`)
  }
}

/** Writes manifests for a cluster. Rejects servers that can run only on this machine. */
async function save(
  folder: string,
  entries: readonly ClientEntry[],
  settings: Omit<ConvertOptions, 'allowLoopback' | 'violationsOf'>,
  force: boolean,
): Promise<void> {
  const { validateResource } = await import('../../../hooks/index.ts')
  const conversion = convertEntries(entries, {
    ...settings,
    prefixOne: true,
    allowLoopback: false,
    violationsOf: (manifest) => validateResource(manifest).violations,
  })
  const first = conversion.entries.find(({ outcome }) => outcome === 'not taken')
  if (first)
    throw invalidConfig(
      `--save: ${printableName(first.entry.name)} cannot be saved: ${first.notes.join('; ')}`,
    )
  saveFolder(resolve(folder), folderFiles(conversion), { force })
}

interface Serving extends RunCommandOptions {
  readonly port: number
  readonly names: readonly string[]
  readonly hooks: ConstructorParameters<typeof DevSession>[0]['hooks']
  readonly stop: AbortController
}

async function serve(documents: readonly LocalObject[], options: Serving): Promise<number> {
  const { stop, startTimeout } = options
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
  const lines = new Map<string, string[]>()
  const show = verboseLine(options)
  const report = (error: unknown) =>
    printError(`gatehouse run: ${error instanceof Error ? error.message : String(error)}`)
  const logs = new LogFiles(join(folder, 'logs'), report)
  const session = new DevSession({
    hooks: options.hooks,
    port: options.port,
    runtimeImage,
    folder,
    ...localEnvironment(options.logLevel),
    startMs: startTimeout * 1000,
    onChange: () => {},
    onLine: (workload, parent, line) => {
      const { name } = parent.metadata
      // Ignore lines from our own proxy in front of the server.
      const isOwn = podTemplateOf(workload)?.spec.containers[0]?.image === runtimeImage
      if (!isOwn) lines.set(name, [...(lines.get(name) ?? []).slice(1 - maxLines), line])
      logs.write(name, `[${workload.metadata.name}] ${line}`)
      show(workload.metadata.name, line)
    },
    onError: report,
  })
  let connected: Connected | undefined
  try {
    const { names } = options
    printError(`Starting ${names.join(', ')} …`)
    await session.declare(documents)
    const end = await watchServers(session, {
      names,
      linesOf: (name) => lines.get(name) ?? [],
      timeoutMs: startTimeout * 1000,
      signal: stop.signal,
      async onAddress(url) {
        print(url)
        connected = await connectClients(options.connect, url)
        printError(connectHint(url, options.connect))
      },
      onChange: (name, sentence) => printError(`${name}: ${sentence}`),
      onMissing: reportMissing,
      onSummary: (summary) => printError(`${summary}.`),
      onComplete: () =>
        printError(names.length > 1 ? 'All servers are responding.' : 'The server is responding.'),
    })
    if (end.state === 'failed') {
      // Omit the fix after an exit: it refers to the logs, which are deleted when this command ends.
      for (const missing of end.missing)
        reportMissing(missing.code === undefined ? missing : { ...missing, fix: undefined })
      return end.missing.find(({ code }) => code)?.code ?? exitCode.failed
    }
    return exitCode.ok
  } finally {
    await connected?.undo()
    await session.stop()
    logs.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function reportMissing({ name, why, fix, lines }: Missing): void {
  printError(`${name}: ${forTerminal(why)}`)
  for (const line of lines.slice(-maxLines)) printError(`  ${forTerminal(line)}`)
  if (fix !== undefined) printError(`  Next step: ${forTerminal(fix)}`)
}

function connectHint(url: string, connected: readonly string[]): string {
  const add = url.includes(`:${defaultPort}/`) ? '' : ` --url ${url}`
  const hint = connected.length > 0 ? '' : `Add this address to a client: gatehouse client add cursor${add}\n`
  return `${hint}Press Ctrl-C to stop everything.`
}
