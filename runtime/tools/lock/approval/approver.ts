/**
 * What becomes of approvals in the console: written into the files of `gatehouse dev`; elsewhere shown as a command, for
 * the console has no rights to write objects, and who may write a lock is decided by the cluster.
 */
import type { input } from '../../../../schemas/index.ts'
import { type Environment, vmcpEnvironment } from '../../../config/index.ts'
import type { ApprovalWay, Approver, ReviewedDrift } from '../../../console/index.ts'
import { patchCommand } from './by-hand.ts'
import { memberOf } from './change.ts'
import { notWritten } from './edit.ts'

export interface ApproverParts {
  readonly env: Environment
  /** The locks in force. */
  readonly toolLocks: () => readonly input.RuntimeToolLock[]
}

export async function makeApprover({ env, toolLocks }: ApproverParts): Promise<Approver> {
  const paths = pathsIn(env[vmcpEnvironment.consoleManifests])
  const lockOf = (reviewed: ReviewedDrift) => lockFor(toolLocks(), reviewed)
  if (!paths) return { way: (reviewed) => byHand(lockOf(reviewed), env, reviewed), approve: refused }
  // It reads manifests with the code of the hooks, which no pod loads.
  const { approveInFile, fileOfLock } = await import('./file.ts')
  const place = (lock: input.RuntimeToolLock, { backend }: ReviewedDrift) => ({
    paths,
    namespace: env[vmcpEnvironment.namespace] ?? 'default',
    backend,
    lock,
  })
  return {
    way(reviewed) {
      const lock = lockOf(reviewed)
      if (!lock) return noLock
      if (lock.name === undefined) return ownFile
      try {
        return { way: 'file', lock: lock.name, file: fileOfLock(place(lock, reviewed)) }
      } catch (error) {
        return notFromHere(error)
      }
    },
    async approve(reviewed) {
      const lock = lockOf(reviewed)
      if (!lock) throw notWritten(noLock.why)
      if (lock.name === undefined) throw notWritten(ownFile.why)
      return approveInFile(place(lock, reviewed), reviewed)
    },
  }
}

function notFromHere(error: unknown): ApprovalWay {
  return { way: 'none', why: error instanceof Error ? error.message : String(error) }
}

const noLock = {
  way: 'none',
  why: 'the configuration has no lock of this backend: edit the file of --pin-first and start again, or write a lock with gatehouse lock',
} as const

/** No object has it, so no manifest does. */
const ownFile = {
  way: 'none',
  why: 'the lock stands in the file of this server, under toolLocks, or in one of --pin-first: change it there, and start again',
} as const

async function refused(): Promise<never> {
  throw notWritten('the console may not write this lock: run the command that it shows')
}

function pathsIn(text: string | undefined): readonly string[] | undefined {
  if (!text) return undefined
  const paths: unknown = JSON.parse(text)
  return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : undefined
}

/** The one that has the item, or had it under another name; a new item joins the first. */
function lockFor(
  locks: readonly input.RuntimeToolLock[],
  reviewed: ReviewedDrift,
): input.RuntimeToolLock | undefined {
  const own = locks.filter(({ backend }) => backend === reviewed.backend)
  const has = (lock: input.RuntimeToolLock, name: string | undefined): boolean =>
    reviewed.kind === 'instructions'
      ? lock.instructions !== undefined
      : (lock[memberOf[reviewed.kind]] ?? []).some((item) => item.name === name)
  return (
    own.find((lock) => has(lock, reviewed.name)) ??
    own.find((lock) => has(lock, reviewed.renamedFrom)) ??
    own[0]
  )
}

function byHand(
  lock: input.RuntimeToolLock | undefined,
  env: Environment,
  reviewed: ReviewedDrift,
): ApprovalWay {
  if (!lock) return noLock
  const namespace = env[vmcpEnvironment.namespace]
  // Names of objects; anything else would not be one word to a shell.
  const isObject = [namespace, lock.name].every(
    (name) => name !== undefined && /^[a-z0-9][a-z0-9.-]*$/.test(name),
  )
  if (!isObject || namespace === undefined || lock.name === undefined) return ownFile
  try {
    return { way: 'command', lock: lock.name, command: patchCommand(lock, namespace, reviewed) }
  } catch (error) {
    return notFromHere(error)
  }
}
