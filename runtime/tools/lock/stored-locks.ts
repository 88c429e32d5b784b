/**
 * Stores locks as files on this machine for trust on first use (`--pin-first`). Each backend has one manifest, which is
 * written when the backend is first seen and never changed afterwards. To approve a different definition, edit the
 * file. A file that is unreadable or belongs to another backend is an error and is never overwritten.
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
import { writeLockInThread } from './writer.ts'

type Stored = ReturnType<LockKeeper['keep']>

const ending = '.lock.yaml'
const fileName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
/** The file system's limit for a file name, minus the extension. */
const maxFileName = 255 - ending.length

/** Stores and loads locks. */
export interface LockStorage extends LockKeeper {
  /**
   * Returns the configuration with the stored locks, which are read on each call. For each backend, a lock in the
   * configuration takes precedence. Throws INVALID_CONFIG for an invalid file.
   */
  with(config: VmcpConfig): VmcpConfig
}

/**
 * Stores a backend's lock in a file. Throws INVALID_CONFIG when the file is not that backend's lock or cannot be
 * written.
 */
export function lockFile(path: string, name: string): LockStorage {
  if (path === '' || path === '-' || /[/\\]$/.test(path))
    throw invalidConfig(`--pin-first: ${JSON.stringify(path)} is not the path of a file`)
  if (!readLock(path, name)) requireWritable(dirname(path), path)
  return {
    with: (config) => withStoredLocks(config, readLock(path, name)?.locks ?? []),
    keep: (backend, listing): Stored =>
      writeLockInThread({ path, kind: 'Backend', backend, offered: offeredIn(listing) }),
  }
}

/** Stores one lock per backend in a folder, which is created if needed. Throws INVALID_CONFIG. */
export function lockFolder(folder: string): LockStorage {
  if (folder === '') throw invalidConfig('--pin-first: "" is not the path of a folder')
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw invalidConfig(`--pin-first: cannot create ${folder}: ${systemReason(error)}`)
  }
  requireWritable(folder, folder)
  return new LockFolder(folder)
}

class LockFolder implements LockStorage {
  readonly #folder: string
  #kinds = new Map<string, BackendKind>()
  /** Caches the parsed files. */
  #known = new Map<string, StoredLock>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * Ignores files for backends that are not in this configuration, because they belong to other servers or to earlier
   * configurations.
   */
  with(config: VmcpConfig): VmcpConfig {
    this.#kinds = kindsOf(config)
    const configured = new Set(config.toolLocks?.map(({ backend }) => backend))
    const known = new Map<string, StoredLock>()
    const problems: string[] = []
    for (const { name } of config.backends ?? []) {
      if (configured.has(name)) continue
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
    const stored = await writeLockInThread({ path, kind, backend, offered: offeredIn(listing) })
    this.#known.set(backend, stored)
    return stored
  }

  #fileOf(backend: string): string {
    if (!fileName.test(backend) || backend.length > maxFileName)
      throw invalidConfig(
        `--pin-first: backend ${JSON.stringify(backend)}: its name is not a safe file name: use at most ${maxFileName} lowercase letters, digits, dots and hyphens, or add a lock to the configuration`,
      )
    return join(this.#folder, `${backend}${ending}`)
  }
}

function withStoredLocks(config: VmcpConfig, stored: readonly RuntimeToolLock[]): VmcpConfig {
  const configured = new Set(config.toolLocks?.map(({ backend }) => backend))
  if (config.pinning?.noLock === 'block')
    throw invalidConfig(
      '--pin-first: cannot be combined with pinning.noLock: block, which blocks every backend without a lock',
    )
  return {
    ...config,
    pinning: { onChanged: 'freeze', onNew: 'block', onRemoved: 'warn', ...config.pinning, noLock: 'pin' },
    toolLocks: [...(config.toolLocks ?? []), ...stored.filter(({ backend }) => !configured.has(backend))],
  }
}

const kindsOfWorkloads: Readonly<Record<string, BackendKind>> = {
  mcp_server: 'MCPServer',
  remote_proxy: 'MCPRemoteProxy',
  server_entry: 'MCPServerEntry',
  openapi_server: 'MCPOpenAPIServer',
}

/** Returns the backends' kinds from metadata that the hooks write. Hand-written files do not contain this metadata. */
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
    throw invalidConfig(`--pin-first: cannot write ${path}: ${systemReason(error)}`)
  }
}
