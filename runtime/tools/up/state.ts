/**
 * The files that `gatehouse up` stores in the user's state folder: settings, clients' tokens, logs and the journal of
 * parked entries. Only the owner can read these files.
 */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { invalidConfig, isFields } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { tokenDigest } from '../../net/index.ts'
import type { ClientId, FileScope, Host } from '../../toolkit/clients/index.ts'
import { recordsFolder, upFolder } from '../../toolkit/client-files/host.ts'
import { ParkJournal } from '../../toolkit/client-files/park-journal.ts'

/** A client file that servers are read from, or that the gateway's entry is added to. */
export interface UpFile {
  readonly client: ClientId | 'plain'
  readonly scope: FileScope | 'file'
  readonly profile?: string | undefined
  readonly file: string
  readonly key: readonly string[]
}

/** A server that cannot run. `why` completes a sentence whose subject is the server. */
export interface SkippedServer {
  readonly name: string
  readonly file: string
  readonly why: string
}

/** Settings of `--login`. */
export interface LoginSettings {
  /** Identity provider where users sign in. Undefined for the built-in identity provider. */
  readonly issuer?: string | undefined
  readonly clientId?: string | undefined
  /** Value of the variable. The file takes precedence, and is read at each start. */
  readonly clientSecret?: string | undefined
  readonly clientSecretFile?: string | undefined
  /** The issuer's accounts that may use the servers. */
  readonly allow: readonly string[]
  /** Origin at which a tunnel publishes the address. */
  readonly publicUrl?: string | undefined
  /** True to print connection instructions for a colleague. */
  readonly share: boolean
}

/** The choices that the user confirmed. A restart repeats these choices. */
export interface UpSettings {
  readonly port: number
  /** Undefined when only this user's clients may use the address. */
  readonly login?: LoginSettings | undefined
  readonly startTimeout: number
  readonly sources: readonly UpFile[]
  /** The servers to run, identified by file and name. */
  readonly servers: readonly { readonly file: string; readonly name: string }[]
  /** Servers that cannot run, each with the reason. The entries of these servers stay in their clients' files. */
  readonly skipped: readonly SkippedServer[]
  /** Files to which the gateway's entry is added. */
  readonly targets: readonly UpFile[]
  /** Values of the variables that the servers refer to. */
  readonly variables: Readonly<Record<string, string>>
}

const settingsName = 'settings.json'

export class UpState {
  readonly folder: string
  readonly records: string
  readonly journal: ParkJournal

  constructor(host: Host) {
    // A relative folder must not depend on the folder in which the servers start.
    this.folder = resolve(host.cwd, upFolder(host))
    this.records = resolve(host.cwd, recordsFolder(host))
    this.journal = new ParkJournal(this.folder)
  }

  get logs(): string {
    return join(this.folder, 'logs')
  }

  /** The users of `--login`. `gatehouse down` does not remove these users. */
  get usersFile(): string {
    return join(dirname(this.folder), 'up-login', 'users.json')
  }

  /** Output of a process in the background. */
  get logFile(): string {
    return join(this.folder, 'up.log')
  }

  /** Returns true until everything is restored and removed. */
  exists(): boolean {
    return existsSync(this.folder)
  }

  /** Creates the folder. Throws INVALID_CONFIG when another user owns the folder. */
  create(): void {
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      const { uid } = lstatSync(this.folder)
      if (process.getuid !== undefined && uid !== process.getuid())
        throw invalidConfig(`${this.folder} belongs to another user`)
      chmodSync(this.folder, 0o700)
    } catch (error) {
      if (error instanceof Error && 'syscall' in error)
        throw invalidConfig(`cannot write to ${this.folder}: ${systemReason(error)}`)
      throw error
    }
  }

  /** Returns undefined when `gatehouse up` has not run since the last `gatehouse down`. */
  readSettings(): UpSettings | undefined {
    try {
      const parsed: unknown = JSON.parse(readFileSync(join(this.folder, settingsName), 'utf8'))
      return isFields(parsed) ? (parsed as unknown as UpSettings) : undefined
    } catch {
      return undefined
    }
  }

  writeSettings(settings: UpSettings): void {
    writePrivate(join(this.folder, settingsName), JSON.stringify(settings))
  }

  /**
   * Writes a new token for the client, and returns its digest. While `gatehouse up` is not running, another program can
   * use its port and receive the previous token.
   */
  renewToken(client: ClientId): string {
    const token = randomBytes(32).toString('base64url')
    mkdirSync(join(this.folder, 'tokens'), { recursive: true, mode: 0o700 })
    writePrivate(this.tokenFile(client), token)
    return tokenDigest(token)
  }

  tokenFile(client: ClientId): string {
    return join(this.folder, 'tokens', client)
  }

  /** Removes everything except the journal. Removes the folder if all clients' files have been restored. */
  clear(): void {
    if (this.journal.read().length === 0) {
      rmSync(this.folder, { recursive: true, force: true })
      return
    }
    for (const name of ['tokens', 'logs', 'up.log', 'up.log.1', settingsName])
      rmSync(join(this.folder, name), { recursive: true, force: true })
  }
}

/** Replaces a file atomically. Only the owner can read the file. */
export function writePrivate(path: string, text: string): void {
  const draft = `${path}.${process.pid}.tmp`
  rmSync(draft, { force: true })
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
  renameSync(draft, path)
}
