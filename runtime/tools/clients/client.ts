/** `gatehouse client list|add|remove|undo|status` manages the gateway's entry in MCP clients' files. */
import { invalidConfig } from '../../../schemas/index.ts'
import { existsSync } from 'node:fs'
import {
  clientIds,
  type ClientId,
  clientRow,
  connectionEntry,
  type Host,
  maskedDiff,
  secretInUrl,
  snippetOf,
  printableName,
} from '../../toolkit/clients/index.ts'
import { exitCode, painter, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'
import {
  type AddOptions,
  bridgeProgram,
  defaultUrl,
  operationOn,
  type EntryOptions,
  refuseMissingFolder,
} from '../../toolkit/client-files/connect.ts'
import { clientNamed, locationFor } from '../../toolkit/client-files/choose.ts'
import { shortPath, thisHost } from '../../toolkit/client-files/host.ts'
import {
  addEntry,
  type OperationResult,
  type FileOperation,
  removeEntry,
  undoOperation,
} from '../../toolkit/client-files/operate.ts'
import { type ClientStatus, statusOf } from './status.ts'
import { urlOfTarget } from '../../toolkit/targets/resolve.ts'
import { runningServer, runningServerAt } from '../../toolkit/targets/running.ts'
import { type Greeting, greet } from '../../toolkit/mcp-client/greeting.ts'

const timeoutMs = 5000

/**
 * Runs `work` for each client. An error for one client does not stop the work for other clients. Returns the exit code.
 */
async function forEachClient(
  words: readonly string[],
  work: (client: ClientId) => Promise<void>,
): Promise<number> {
  if (words.length === 0) throw missingClient()
  const clients = words.map(clientNamed)
  let failed = false
  for (const client of clients) {
    try {
      await work(client)
    } catch (error) {
      failed = true
      printError(`${clientRow(client).title}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return failed ? exitCode.failed : exitCode.ok
}

function missingClient() {
  const host = thisHost()
  const found = clientIds.filter((client) => statusOf(client, 'gatehouse', host).some(({ exists }) => exists))
  const names =
    found.length > 0 ? `on this machine: ${found.join(', ')}` : `known clients: ${clientIds.join(', ')}`
  return invalidConfig(`CLIENT is missing; ${names}`)
}

export async function addClients(words: readonly string[], typed: AddOptions): Promise<number> {
  const host = thisHost()
  checkUrl(typed)
  if (typed.server !== undefined && words.length > 0) await warnOfUnknown(typed.server)
  const options = withRunningServer(typed)
  const requiresLogin = words.length > 0 && (await probeLogin(options))
  return forEachClient(words, async (client) => {
    const connection = {
      client,
      name: options.name,
      url: options.url ?? defaultUrl,
      bearerVariable: options.bearerEnv,
      program: bridgeProgram(client, { ...options, requiresLogin }),
    }
    const entry = connectionEntry(connection)
    if (options.print) {
      const { key, scope } = locationFor(client, options, host)
      return showSnippet(connection, key, scope)
    }
    const operation = operationOn(client, options, host)
    if (!options.create) refuseMissingFolder(operation.location, host)
    const done = await addEntry(operation, entry)
    reportOperation(operation, done, host, {
      what: `"${options.name}" connects to ${options.server ?? connection.url}`,
      revealsInserted: true,
    })
  })
}

/**
 * Chooses how the client reaches a server on this machine. A virtual server keeps its address across restarts, so the
 * entry contains its URL. The entry of any other server starts a bridge that looks up the name, because the other
 * servers use a new port after each start. A server that requires a token also needs the bridge, which reads the token.
 */
function withRunningServer(options: AddOptions): AddOptions {
  const { server, ...rest } = options
  if (server === undefined) {
    const isGuarded = localTokenOf(options.url ?? defaultUrl) !== undefined
    return isGuarded ? { ...options, stdio: true } : options
  }
  const found = runningServer(server)
  if (found?.kind !== 'VirtualMCPServer') return options
  return { ...rest, url: found.url, stdio: options.stdio || found.token !== undefined }
}

/** Returns the token that a server on this machine requires from local programs. */
function localTokenOf(url: string): string | undefined {
  return runningServerAt(new URL(url))?.token
}

/**
 * Warns about a name that is unknown on this machine and in the cluster. An unknown name is not an error, because the
 * server may start later.
 */
async function warnOfUnknown(server: string): Promise<void> {
  if (runningServer(server)) return
  await urlOfTarget(server, undefined).catch((error: unknown) => {
    printError(`Warning: ${error instanceof Error ? error.message : String(error)}`)
  })
}

/**
 * Returns true if the gateway requires a login. Warns if the gateway does not respond, or if `--url` is the address of
 * another kind of server.
 */
async function probeLogin({ url, server, bearerFile }: AddOptions): Promise<boolean> {
  if (server !== undefined || bearerFile !== undefined) return false
  const address = url ?? defaultUrl
  const greeting = await greet(address, { timeoutMs, token: localTokenOf(address) })
  const { kind } = greeting
  if (url !== undefined && (kind === 'silent' || kind === 'other'))
    printError(`Warning: ${address} ${textOf(greeting)}; run gatehouse doctor ${address} to find the cause`)
  else if (kind === 'silent')
    printError(`Warning: no server responds at ${address}; start one with gatehouse run, up or dev`)
  return kind === 'login'
}

function checkUrl({ url, server, bearerFile }: AddOptions): void {
  if (url !== undefined && server !== undefined)
    throw invalidConfig('--server: cannot be combined with --url')
  if (bearerFile !== undefined && !bearerFile.startsWith('/')) {
    throw invalidConfig(
      '--bearer-file: must be an absolute path, because clients start programs in any folder',
    )
  }
  if (bearerFile !== undefined && !existsSync(bearerFile)) {
    throw invalidConfig(`--bearer-file: ${bearerFile} does not exist`)
  }
  if (url === undefined) return
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw invalidConfig('--url: must be an http or https URL')
  if (secretInUrl(new URL(url)) !== undefined) {
    throw invalidConfig('--url: must not contain a secret; use --bearer-env VARIABLE or --bearer-file FILE')
  }
}

export function removeClients(words: readonly string[], options: EntryOptions): Promise<number> {
  const host = thisHost()
  return forEachClient(words, async (client) => {
    const operation = operationOn(client, options, host)
    const done = await removeEntry(operation)
    reportOperation(operation, done, host, { what: `"${options.name}" removed`, revealsInserted: false })
  })
}

export function undoClients(words: readonly string[], options: EntryOptions): Promise<number> {
  const host = thisHost()
  return forEachClient(words, async (client) => {
    const operation = operationOn(client, options, host)
    const done = await undoOperation(operation)
    reportOperation(operation, done, host, { what: 'the last change was undone', revealsInserted: false })
  })
}

interface OperationReport {
  readonly what: string
  /** True when the inserted text contains only the gateway's entry and can therefore be printed. */
  readonly revealsInserted: boolean
}

function reportOperation(
  { location, dryRun }: FileOperation,
  done: OperationResult,
  host: Host,
  { what, revealsInserted }: OperationReport,
): void {
  const { title, pickUp, format } = clientRow(location.client)
  const path = shortPath(location.file, host)
  if (done.outcome === 'none') return print(`${title}: nothing to do in ${path}`)
  if (dryRun) {
    print(`${title}: would change ${path}`)
    return print(maskedDiff(done.text, done.changes, path, { format, revealsInserted }))
  }
  print(`${title}: ${what}`)
  print(
    `  ${outcomes[done.outcome]} ${path}${done.backup === undefined ? '' : `, backup ${shortPath(done.backup, host)}`}`,
  )
  print(`  ${pickUp}.`)
}

const outcomes = {
  changed: 'Changed',
  created: 'Created',
  removed: 'Removed the file that was created for the entry:',
} as const

function showSnippet(...snippetArguments: Parameters<typeof snippetOf>): void {
  const [connection, key, scope] = snippetArguments
  const { text, command, link } = snippetOf(connection, key, scope)
  const { title, pickUp } = clientRow(connection.client)
  print(`${title}: add this to its configuration`)
  print(text)
  if (command !== undefined) print(`or run\n  ${command}`)
  if (link !== undefined) print(`or open\n  ${link}`)
  print(`${pickUp}.`)
}

export interface StatusOptions {
  readonly name: string
  readonly output: 'text' | 'json'
  readonly check: boolean
  /** True to include clients without a file. */
  readonly all: boolean
}

/** Prints the status of the clients named in `words`, or of every client that has a file. Returns the exit code. */
export async function clientStatus(words: readonly string[], options: StatusOptions): Promise<number> {
  const host = thisHost()
  const clients = words.length > 0 ? words.map(clientNamed) : clientIds
  const rows = clients
    .flatMap((client) => statusOf(client, options.name, host))
    .filter((row) => row.exists || words.length > 0 || options.all)
  const responses = new Map<string, string>()
  for (const { url } of options.check ? rows : []) {
    if (url !== undefined && !responses.has(url)) responses.set(url, await describeResponse(url))
  }
  if (options.output === 'json') printJson(rows.map((row) => asJson(row, responses)))
  else if (rows.length === 0)
    print('No MCP client files found. Run gatehouse client list --all to see where Gatehouse looks for them.')
  else for (const row of rows) print(line(row, responses, host, rows))
  return rows.some(({ state }) => state === 'unreadable') ? exitCode.usage : exitCode.ok
}

function asJson(row: ClientStatus, responses: ReadonlyMap<string, string>) {
  const { client, scope, file, exists, state, servers, why } = row
  const { url } = row
  const response = url === undefined ? undefined : responses.get(url)
  return {
    client,
    scope,
    file,
    exists,
    state,
    servers,
    ...(url !== undefined && { url: shownUrl(row) }),
    ...(why !== undefined && { why }),
    ...(response !== undefined && { response }),
  }
}

/** Hides the URL path and query in an entry that Gatehouse did not write, because they can contain a secret. */
function shownUrl({ state, url }: ClientStatus): string | undefined {
  return url === undefined || state !== 'differs' ? url : new URL(url).origin
}

const styles = {
  connected: 'green',
  absent: 'dim',
  differs: 'yellow',
  shadowed: 'yellow',
  unreadable: 'red',
} as const

function line(
  row: ClientStatus,
  responses: ReadonlyMap<string, string>,
  host: Host,
  rows: readonly ClientStatus[],
): string {
  const paint = painter({ colour: process.stdout.isTTY && process.stdout.hasColors() })
  const width = Math.max(...rows.map(({ client }) => client.length))
  const count = quantity(row.servers.length, 'server')
  const what = row.exists ? (row.state === 'unreadable' ? '' : `  ${count}`) : '  no file'
  const response = row.url === undefined ? undefined : responses.get(row.url)
  const detail = [shownUrl(row), response, row.why].filter((part) => part !== undefined).join('  ')
  const state = paint(styles[row.state], row.state.padEnd(10))
  return `${row.client.padEnd(width)}  ${row.scope.padEnd(7)}  ${state}  ${shortPath(row.file, host)}${what}${detail ? `\n${' '.repeat(width + 2)}${detail}` : ''}`
}

async function describeResponse(url: string): Promise<string> {
  return textOf(await greet(url, { timeoutMs, token: localTokenOf(url) }))
}

function textOf(greeting: Greeting): string {
  switch (greeting.kind) {
    case 'server':
      return `responds as ${greeting.name === undefined ? 'an MCP server' : printableName(greeting.name)}`
    case 'login':
      return 'responds, but requires a login'
    case 'other':
      return `responded with status ${greeting.status} and is not an MCP server`
    case 'silent':
      return 'does not respond'
  }
}
