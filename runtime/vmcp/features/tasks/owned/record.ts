/** The stored state of a task that Gatehouse itself runs. */
import { GatehouseError, isFields } from '../../../../../schemas/index.ts'
import { type AskReply, errorObject, JsonObject } from '../../../../mcp/index.ts'
import type { Store } from '../../../../store/index.ts'
import type { Outcome } from '../../../model/outcome.ts'
import { isTerminal, type TaskStatus } from '../shapes.ts'

/** Lifetime of a lease in milliseconds. The replica that runs a task renews the lease. */
export const leaseMs = 15_000

export interface OwnedRecord {
  readonly taskId: string
  readonly status: TaskStatus
  readonly statusMessage?: string | undefined
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number
  readonly pollIntervalMs: number
  /** Open questions, as raw InputRequests. */
  readonly inputRequests?: string | undefined
  /** The result or the error, as JSON text. */
  readonly end?: { readonly kind: 'result' | 'error'; readonly json: string } | undefined
}

/** Reads and writes the records. All writes keep the lifetime of the task. */
export class OwnedRecords {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Creates a record and its lease. The task can be read as soon as the promise resolves. */
  async create(record: OwnedRecord): Promise<void> {
    await this.#store.set(`lease:${record.taskId}`, '1', { ttlMs: leaseMs, yields: true })
    await this.#store.set(`task:${record.taskId}`, JSON.stringify(record), {
      ttlMs: record.ttlMs,
      yields: true,
    })
  }

  renew(taskId: string): Promise<boolean> {
    return this.#store.set(`lease:${taskId}`, '1', { ttlMs: leaseMs })
  }

  /**
   * Returns a record, or undefined if the task does not exist. A task whose replica has stopped becomes a failed task.
   */
  async read(taskId: string): Promise<OwnedRecord | undefined> {
    const record = await this.#read(taskId)
    if (!record || isTerminal(record.status) || (await this.#store.get(`lease:${taskId}`)) !== undefined)
      return record
    const error = new GatehouseError('INTERNAL', { detail: 'the server that ran the task has stopped' })
    return (await this.change(taskId, () => failedWith(error))) ?? (await this.#read(taskId))
  }

  /** Changes a record unless the task has ended. Returns the changed record. */
  async change(
    taskId: string,
    changes: (record: OwnedRecord) => Partial<OwnedRecord>,
  ): Promise<OwnedRecord | undefined> {
    for (;;) {
      const entry = await this.#store.read(`task:${taskId}`)
      const record = entry && recordIn(entry.value)
      if (!record || isTerminal(record.status)) return undefined
      const lastUpdatedAt = new Date(this.#now()).toISOString()
      const changed = { ...record, ...changes(record), lastUpdatedAt }
      if (await this.#store.swap(`task:${taskId}`, entry, JSON.stringify(changed))) return changed
    }
  }

  async requestCancel(taskId: string): Promise<void> {
    await this.#store.set(`cancel:${taskId}`, '1', { ttlMs: leaseMs * 4 })
  }

  async takeCancel(taskId: string): Promise<boolean> {
    return (await this.#store.take(`cancel:${taskId}`)) !== undefined
  }

  async storeAnswer(taskId: string, key: string, { result, error }: AskReply): Promise<void> {
    const answer = result ? `{"result":${result.toString()}}` : `{"error":${String(error)}}`
    await this.#store.set(`answer:${taskId}:${key}`, answer, { ttlMs: leaseMs * 4, yields: true })
  }

  async takeAnswer(taskId: string, key: string): Promise<AskReply | undefined> {
    const answer = await this.#store.take(`answer:${taskId}:${key}`)
    if (answer === undefined) return undefined
    const stored = new JsonObject(Buffer.from(answer))
    const [result, error] = [stored.raw('result'), stored.raw('error')]
    return result ? { result } : error && { error }
  }

  async #read(taskId: string): Promise<OwnedRecord | undefined> {
    const value = await this.#store.get(`task:${taskId}`)
    return value === undefined ? undefined : recordIn(value)
  }
}

function recordIn(value: string): OwnedRecord | undefined {
  const record: unknown = JSON.parse(value)
  return isFields(record) ? (record as unknown as OwnedRecord) : undefined
}

/** Returns the changes with which a task ends. */
export function endedWith(outcome: Outcome): Partial<OwnedRecord> {
  if (outcome.kind === 'error')
    return {
      status: 'failed',
      inputRequests: undefined,
      end: { kind: 'error', json: outcome.error.toString() },
    }
  if (outcome.kind !== 'result') return failedWith(new GatehouseError('BACKEND_PROTOCOL'))
  return {
    status: 'completed',
    inputRequests: undefined,
    end: { kind: 'result', json: outcome.result.toString() },
  }
}

export function failedWith(error: unknown): Partial<OwnedRecord> {
  const object = errorObject(error)
  const json = JSON.stringify(object)
  return {
    status: 'failed',
    statusMessage: object.message,
    inputRequests: undefined,
    end: { kind: 'error', json },
  }
}

/** Returns the task object in the shape of the extension, without a result. */
export function taskObject(record: OwnedRecord): JsonObject {
  const { inputRequests: _, end: __, ...members } = record
  return new JsonObject(Buffer.from(JSON.stringify(members)))
}
