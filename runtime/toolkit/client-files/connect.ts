/** Options for changing the gateway's entry in a client's file, and entries that exist only while a server runs. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { invalidConfig } from '../../../schemas/index.ts'
import {
  type ClientId,
  clientRow,
  connectionEntry,
  type FileScope,
  type Host,
  needsProgram,
} from '../clients/index.ts'
import { printError } from '../terminal/output.ts'
import { clientNamed, locationFor } from './choose.ts'
import { recordsFolder, shortPath, thisHost, upFolder } from './host.ts'
import { ParkJournal } from './park-journal.ts'
import { readFileOnDisk } from './file.ts'
import { addEntry, type FileOperation, undoOperation } from './operate.ts'
import { hashOfEntry } from './records.ts'
import { runningOf } from './running.ts'
import { selfCommand } from '../terminal/self.ts'

export interface EntryOptions {
  readonly name: string
  readonly scope: FileScope
  readonly profile?: string
  readonly replace: boolean
  readonly dryRun: boolean
  /** Write even while the client is running. */
  readonly whileRunning: boolean
}

export interface AddOptions extends EntryOptions {
  /** Create the client's folder if it does not exist. */
  readonly create: boolean
  readonly url?: string
  readonly server?: string
  readonly bearerEnv?: string
  readonly bearerFile?: string
  readonly stdio: boolean
  readonly print: boolean
}

export const defaultUrl = 'http://127.0.0.1:4483/mcp'

/**
 * Returns the command that bridges stdio to the gateway, with absolute paths, if the client needs it or the user
 * requests it. With `requiresLogin`, the command logs in to the gateway.
 */
export function bridgeProgram(
  client: ClientId,
  options: AddOptions & { readonly requiresLogin?: boolean },
): readonly string[] | undefined {
  const { stdio, server, bearerFile, url, requiresLogin } = options
  if (!stdio && server === undefined && bearerFile === undefined && !needsProgram(client)) return undefined
  if (options.bearerEnv !== undefined) {
    throw invalidConfig(
      '--bearer-env: applies only to clients that call the gateway directly; for gatehouse proxy stdio, use --bearer-file FILE',
    )
  }
  const token = bearerFile === undefined ? [] : ['--remote-auth-bearer-token-file', bearerFile]
  const login = requiresLogin && bearerFile === undefined ? ['--remote-auth'] : []
  return [...selfCommand(), 'proxy', 'stdio', server ?? url ?? defaultUrl, ...token, ...login]
}

export function operationOn(client: ClientId, options: EntryOptions, host: Host): FileOperation {
  const location = locationFor(client, options, host)
  const { title, rewrittenBy = [] } = clientRow(client)
  const isOwnFile = location.scope !== 'project'
  const running =
    isOwnFile && !options.dryRun && !options.whileRunning ? runningOf(rewrittenBy, host) : undefined
  if (running !== undefined) {
    throw invalidConfig(
      `${title} is running and would overwrite the change: quit it first, or use --while-running`,
    )
  }
  const { name, replace, dryRun } = options
  const { target } = readFileOnDisk(location.file)
  const parked = new ParkJournal(upFolder(host)).find({ target, file: location.file })
  if (parked?.path.at(-1) === name)
    throw invalidConfig(
      `gatehouse up has connected ${title}: run gatehouse down first, or choose another --name`,
    )
  return { location, name, records: recordsFolder(host), replace, dryRun, now: () => new Date() }
}

/** Throws INVALID_CONFIG when the client's folder does not exist, because the client is probably not installed. */
export function refuseMissingFolder({ client, file, scope }: FileOperation['location'], host: Host): void {
  const folder = dirname(file)
  if (scope === 'project' || existsSync(folder)) return
  throw invalidConfig(
    `folder ${shortPath(folder, host)} does not exist: is ${clientRow(client).title} installed? Use --create to create it anyway`,
  )
}

export interface Connected {
  /** Removes the entries. */
  undo(): Promise<void>
}

const temporaryEntry: EntryOptions = {
  name: 'gatehouse',
  scope: 'user',
  replace: false,
  dryRun: false,
  whileRunning: false,
}

/** Adds the gateway's entry to each client's file. Prints errors and continues with the other clients. */
export async function connectClients(words: readonly string[], url: string): Promise<Connected> {
  const host = thisHost()
  const done: FileOperation[] = []
  for (const word of words) {
    try {
      const client = clientNamed(word)
      const program = bridgeProgram(client, {
        ...temporaryEntry,
        create: false,
        url,
        stdio: false,
        print: false,
      } satisfies AddOptions)
      const entry = connectionEntry({ client, name: temporaryEntry.name, url, program })
      const operation = operationOn(client, temporaryEntry, host)
      refuseMissingFolder(operation.location, host)
      const { outcome } = await addEntry(operation, entry)
      // Keeps an entry that already existed.
      if (outcome === 'none') continue
      done.push({ ...operation, wrote: hashOfEntry(entry) })
      printError(`Connected ${word}; its file will be restored at the end.`)
    } catch (error) {
      printError(`${word}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return {
    async undo() {
      for (const operation of done) {
        await undoOperation(operation).catch((error: unknown) => {
          printError(
            `${operation.location.client}: ${error instanceof Error ? error.message : String(error)}`,
          )
        })
      }
    },
  }
}
