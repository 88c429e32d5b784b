/**
 * Locks of backends as files of this machine, for trust on first use (`--pin-first`): one manifest for each backend, written
 * when the backend is first seen and never changed afterwards. Who approves something else edits the file, as any lock. A file
 * that cannot be read, or is none of its backend, is an error, and is never written over.
 */
import { accessSync, constants, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { GatehouseError, invalidConfig, type RuntimeToolLock } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import type { LockKeeper } from '../../vmcp/index.ts'
import { readLock, type StoredLock } from './lock-file.ts'
import { offeredIn } from './manifest.ts'
import type { BackendKind } from './targets.ts'
import { writeLockAside } from './writer.ts'

type Stored = ReturnType<LockKeeper['keep']>

const ending = '.lock.yaml'
const fileName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
/** What file systems take, without the ending. */
const maxFileName = 255 - ending.length

/** Where locks are, and where new ones go. */
export interface LockPlace extends LockKeeper {
  /**
   * The configuration with the locks that are there, read again each time; those of the configuration itself go before them,
   * backend by backend. Throws INVALID_CONFIG for a file that is none.
   */
  with(config: VmcpConfig): VmcpConfig
}

/** One file, for one backend. Throws INVALID_CONFIG when it is no lock of it, or could not be written. */
export function lockFile(path: string, name: string): LockPlace {
  if (path === '' || path === '-' || /[/\\]$/.test(path))
    throw invalidConfig(`--pin-first: ${JSON.stringify(path)} is not the path of a file`)
  if (!readLock(path, name)) requireWritable(dirname(path), path)
  return {
    with: (config) => withStoredLocks(config, readLock(path, name)?.locks ?? []),
    keep: (backend, listing): Stored =>
      writeLockAside({ path, kind: 'Backend', backend, offered: offeredIn(listing) }),
  }
}

/** A folder with a file for each backend, named after it. It is made where it is not there. Throws INVALID_CONFIG. */
export function lockFolder(folder: string): LockPlace {
  if (folder === '') throw invalidConfig('--pin-first: "" is not the path of a folder')
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw invalidConfig(`--pin-first: ${folder} cannot be made: ${systemReason(error)}`)
  }
  requireWritable(folder, folder)
  return new LockFolder(folder)
}

class LockFolder implements LockPlace {
  readonly #folder: string
  #kinds = new Map<string, BackendKind>()
  /** What the files of the backends were found to be. */
  #known = new Map<string, StoredLock>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Files of backends that this configuration does not have are those of other servers, or of other times. */
  with(config: VmcpConfig): VmcpConfig {
    this.#kinds = kindsOf(config)
    const given = new Set(config.toolLocks?.map(({ backend }) => backend))
    const known = new Map<string, StoredLock>()
    const problems: string[] = []
    for (const { name } of config.backends ?? []) {
      if (given.has(name)) continue
      try {
        const stored = readLock(this.#fileOf(name), name, this.#known.get(name))
        if (stored) known.set(name, stored)
      } catch (error) {
        if (!(error instanceof GatehouseError)) throw error
        problems.push(error.message)
      }
    }
    if (problems.length > 0) throw invalidConfig(problems.join('\n'))
    this.#known = known
    return withStoredLocks(
      config,
      [...known.values()].flatMap(({ locks }) => locks),
    )
  }

  async keep(backend: string, listing: Parameters<LockKeeper['keep']>[1]): Stored {
    const kind = this.#kinds.get(backend) ?? 'Backend'
    const path = this.#fileOf(backend)
    const stored = await writeLockAside({ path, kind, backend, offered: offeredIn(listing) })
    this.#known.set(backend, stored)
    return stored
  }

  #fileOf(backend: string): string {
    if (!fileName.test(backend) || backend.length > maxFileName)
      throw invalidConfig(
        `--pin-first: backend ${JSON.stringify(backend)}: the name of its file would be no safe one: it must be of at most ${maxFileName} lowercase letters, digits, dots and hyphens, or have a lock in the configuration`,
      )
    return join(this.#folder, `${backend}${ending}`)
  }
}

function withStoredLocks(config: VmcpConfig, stored: readonly RuntimeToolLock[]): VmcpConfig {
  const given = new Set(config.toolLocks?.map(({ backend }) => backend))
  if (config.pinning?.noLock === 'block')
    throw invalidConfig(
      '--pin-first: cannot be combined with pinning.noLock block, which opens no backend without a lock',
    )
  return {
    ...config,
    pinning: { onChanged: 'freeze', onNew: 'block', onRemoved: 'warn', ...config.pinning, noLock: 'pin' },
    toolLocks: [...(config.toolLocks ?? []), ...stored.filter(({ backend }) => !given.has(backend))],
  }
}

const kindsOfWorkloads: Readonly<Record<string, BackendKind>> = {
  mcp_server: 'MCPServer',
  remote_proxy: 'MCPRemoteProxy',
  server_entry: 'MCPServerEntry',
}

/** As the hooks tell them; a file that was written by hand says nothing of it. */
function kindsOf({ backends = [] }: VmcpConfig): Map<string, BackendKind> {
  return new Map(
    backends.flatMap(({ name, metadata }) => {
      const kind = kindsOfWorkloads[metadata?.['workload_type'] ?? '']
      return kind ? [[name, kind] as const] : []
    }),
  )
}

function requireWritable(folder: string, path: string): void {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw invalidConfig(`--pin-first: ${path} cannot be written: ${systemReason(error)}`)
  }
}
