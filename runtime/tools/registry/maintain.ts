/** `gatehouse add --update` and `--check`: compare the servers in `registry.lock` with their registry. */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import {
  type RegistryOptions,
  registryClient,
  parseRequest,
  prepare,
  refuseChanged,
  refuseConflicts,
  refuseRollback,
  registryFor,
  showEmptySecrets,
  withServer,
} from './add.ts'
import { EntryRejected } from './errors.ts'
import { writePlan } from './folder.ts'
import { type LockRow, lockName, readLock, type RegistryLock } from './lock-file.ts'
import { planObject, planText } from './report.ts'
import type { RegistryClient } from './registry-client.ts'

type Folder = { readonly output: string }

interface Selected {
  readonly name: string
  readonly locked: LockRow
  /** Version in the request. Undefined for the latest one. */
  readonly version: string | undefined
}

function selected(name: string | undefined, lock: RegistryLock, { output }: Folder): readonly Selected[] {
  const all = Object.entries(lock.servers)
  if (all.length === 0) throw invalidConfig(`${output}: has no ${lockName}; add a server first`)
  if (name === undefined) return all.map(([server, locked]) => ({ name: server, locked, version: undefined }))
  const { name: wanted, version } = parseRequest(name)
  const locked = lock.servers[wanted]
  if (!locked) throw invalidConfig(`${wanted}: is not in ${output}/${lockName}`)
  return [{ name: wanted, locked, version }]
}

/** Moves the servers to the latest version, or one server to the named version. Returns the exit code. */
export async function updateServers(
  name: string | undefined,
  options: RegistryOptions & Folder,
): Promise<number> {
  let lock = readLock(options.output)
  const source = registryClient(options)
  const reports: object[] = []
  let code: number = exitCode.ok
  for (const one of selected(name, lock, options)) {
    try {
      const updated = await updateServer(one, { lock, source, options })
      lock = updated.lock
      reports.push(updated.report)
    } catch (error) {
      const message = messageOf(error)
      code = Math.max(code, error instanceof EntryRejected ? exitCode.failed : exitCode.usage)
      reports.push({ name: one.name, error: message })
      printError(forTerminal(message))
    }
  }
  if (options.format === 'json') printJson({ servers: reports })
  return code
}

interface UpdateInput {
  readonly lock: RegistryLock
  readonly source: RegistryClient
  readonly options: RegistryOptions & Folder
}

async function updateServer(
  { name, locked, version: wanted }: Selected,
  { lock, source, options }: UpdateInput,
): Promise<{ readonly lock: RegistryLock; readonly report: object }> {
  const { output: folder } = options
  const registry = registryFor(name, options.registry, lock)
  const entry = await source.find(name, wanted, registry)
  refuseChanged(entry, locked)
  if (wanted === undefined) refuseRollback(entry, locked)
  const { version } = entry.server
  if (version === locked.version && options.set.size === 0) {
    if (options.format === 'text')
      print(`${name}: ${version} is ${wanted === undefined ? 'the latest version' : 'already locked'}`)
    return { lock, report: { name, version, from: version, written: [] } }
  }
  const prepared = await prepare({ entry, registry, locked, folder, options, isUpdate: true })
  if (options.format === 'text') {
    print(`${name}: ${locked.version} → ${version}`)
    print(forTerminal(planText(prepared)))
  }
  if (options.dryRun) return { lock, report: { ...planObject(prepared, []), from: locked.version } }
  refuseConflicts(folder, prepared.plan, options)
  const next = withServer(lock, prepared)
  const written = writePlan(folder, prepared.plan, { before: lock, after: next })
  if (options.format === 'text') print(`Written to ${folder}: ${written.join(', ')}\n`)
  showEmptySecrets(prepared.plan.emptySecrets)
  return { lock: next, report: { ...planObject(prepared, written), from: locked.version } }
}

/** Reports servers whose locked entry is missing, deleted or changed. Writes nothing. Returns the exit code. */
export async function checkServers(
  name: string | undefined,
  options: RegistryOptions & Folder,
): Promise<number> {
  const lock = readLock(options.output)
  if (name !== undefined && parseRequest(name).version !== undefined)
    throw invalidConfig('NAME: --check always checks the locked version; remove the version')
  const source = registryClient(options)
  const reports: { readonly name: string; readonly version: string; readonly problem?: string }[] = []
  for (const { name: server, locked } of selected(name, lock, options)) {
    const { version } = locked
    try {
      const registry = registryFor(server, options.registry, lock)
      const entry = await source.find(server, version, registry)
      refuseChanged(entry, locked)
      if (entry.status === 'deprecated') printError(`Warning: ${server}@${version} is deprecated`)
      reports.push({ name: server, version })
    } catch (error) {
      if (!(error instanceof EntryRejected)) throw error
      reports.push({ name: server, version, problem: error.message })
    }
  }
  if (options.format === 'json') printJson({ servers: reports })
  else
    for (const { name: server, version, problem } of reports)
      print(forTerminal(problem ?? `${server}@${version}: unchanged`))
  return reports.some(({ problem }) => problem !== undefined) ? exitCode.failed : exitCode.ok
}

function messageOf(error: unknown): string {
  if (error instanceof EntryRejected) return error.message
  if (error instanceof GatehouseError) return error.message
  throw error
}
