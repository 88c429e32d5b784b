/**
 * Handles approvals in the console. Under `gatehouse dev`, writes approvals to the manifests. Elsewhere, returns a
 * command for a user with write permission, because the console has no permission to write objects.
 */
import type { input } from '../../../../schemas/index.ts'
import { type Environment, vmcpEnvironment } from '../../../config/index.ts'
import type { ApprovalWay, Approver, ReviewedDrift } from '../../../console/index.ts'
import { patchCommand } from './by-hand.ts'
import { memberOf } from './change.ts'
import { notWritten } from './edit.ts'

export interface ApproverParts {
  readonly env: Environment
  /** Returns the current locks. */
  readonly toolLocks: () => readonly input.RuntimeToolLock[]
}

export async function makeApprover({ env, toolLocks }: ApproverParts): Promise<Approver> {
  const paths = pathsIn(env[vmcpEnvironment.consoleManifests])
  const lockOf = (reviewed: ReviewedDrift) => lockFor(toolLocks(), reviewed)
  if (!paths) return { way: (reviewed) => byHand(lockOf(reviewed), env, reviewed), approve: rejectApproval }
  // This import loads the hooks' code, which must not be loaded in a pod.
  const { approveInFile, fileOfLock } = await import('./file.ts')
  const soughtLock = (lock: input.RuntimeToolLock, { backend }: ReviewedDrift) => ({
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
        return { way: 'file', lock: lock.name, file: fileOfLock(soughtLock(lock, reviewed)) }
      } catch (error) {
        return notPossible(error)
      }
    },
    async approve(reviewed) {
      const lock = lockOf(reviewed)
      if (!lock) throw notWritten(noLock.why)
      if (lock.name === undefined) throw notWritten(ownFile.why)
      return approveInFile(soughtLock(lock, reviewed), reviewed)
    },
  }
}

function notPossible(error: unknown): ApprovalWay {
  return { way: 'none', why: error instanceof Error ? error.message : String(error) }
}

const noLock = {
  way: 'none',
  why: 'the configuration has no lock for this backend: edit the --pin-first file and restart, or write a lock with gatehouse lock',
} as const

/** The lock does not come from an object, so no manifest contains it. */
const ownFile = {
  way: 'none',
  why: 'the lock is in toolLocks in this server’s file, or in a --pin-first file: change it there, then restart',
} as const

async function rejectApproval(): Promise<never> {
  throw notWritten('the console does not have permission to write this lock: run the displayed command')
}

function pathsIn(text: string | undefined): readonly string[] | undefined {
  if (!text) return undefined
  const paths: unknown = JSON.parse(text)
  return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : undefined
}

/**
 * Returns the lock that contains the item under its current or previous name. A new item is added to the first lock.
 */
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
  // Only object names are certain to be a single safe shell word.
  const isObject = [namespace, lock.name].every(
    (name) => name !== undefined && /^[a-z0-9][a-z0-9.-]*$/.test(name),
  )
  if (!isObject || namespace === undefined || lock.name === undefined) return ownFile
  try {
    return { way: 'command', lock: lock.name, command: patchCommand(lock, namespace, reviewed) }
  } catch (error) {
    return notPossible(error)
  }
}
