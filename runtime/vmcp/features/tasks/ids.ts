/**
 * Task ids for clients. An id contains everything that is needed to find the task again, sealed, so any replica accepts
 * the id without a stored record. An id is valid only for the caller that created the task, and only until it expires.
 * Source: MCP 2025-11-25, tasks, "Security Considerations"; ext-tasks, "Security Considerations".
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import { makeSealer } from '../../model/sealer.ts'
import { callerOf, type OperationClient } from '../../model/session.ts'
import type { TaskRef } from '../../model/task.ts'

const formatVersion = 1
/** Clients send the id in a header, and Node limits all headers to 16 KiB. */
const maxIdLength = 4096

export type TaskContent = Omit<TaskRef, 'id' | 'hash'>

export interface TaskIds {
  /** Returns the id and its hash. Throws BACKEND_PROTOCOL if the backend's task id is too long. */
  seal(content: TaskContent, client: OperationClient): TaskRef
  /** Throws INVALID_PARAMS, with the same message for forged, foreign and expired ids. */
  open(id: string | undefined, client: OperationClient): TaskRef
}

export function makeTaskIds(options: {
  readonly server: string
  /** Returns key material that the replicas share; see `SealerOptions`. */
  readonly secrets: () => readonly string[]
  readonly now: () => number
}): TaskIds {
  const { server, secrets, now } = options
  const sealer = makeSealer({
    formatVersion,
    purpose: 'gatehouse vmcp task id',
    secrets,
    maxLength: maxIdLength,
  })
  return {
    seal(content, client) {
      const { identity, backend, taskId, tool, original, shape, notAfter, pollMs, session } = content
      const facts = [identity, backend, taskId, tool, original, shape, notAfter, pollMs]
      const text = JSON.stringify(session ? [...facts, session] : facts)
      const id = sealer.seal(text, [server, callerOf(client)])
      if (id.length > maxIdLength) {
        const cause = new Error('the task id is too long')
        throw new GatehouseError('BACKEND_PROTOCOL', { cause })
      }
      return { ...content, id, hash: hashOf(id) }
    },
    open(id, client) {
      const text = id === undefined ? undefined : sealer.open(id, [server, callerOf(client)])
      if (id === undefined || text === undefined) throw unknownTask()
      const [identity, backend, taskId, tool, original, shape, notAfter, pollMs, session] = JSON.parse(text)
      if (notAfter <= now()) throw unknownTask()
      const facts = { identity, backend, taskId, tool, original, shape, notAfter, pollMs, session }
      return { id, hash: hashOf(id), ...facts }
    },
  }
}

function hashOf(id: string): string {
  return hash('sha256', id, 'hex').slice(0, 32)
}

/** Returns the error for an id that is unknown, expired, or belongs to another caller. */
export function unknownTask(): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: unknown or expired task' })
}
