/**
 * Problems with individual lists from a backend: lists that could not be read, ended early, or are declared
 * incorrectly. The backend's other lists are not affected.
 */
import type { Events } from '../../../observe/index.ts'
import { GatehouseError, type ErrorCode } from '../../../../schemas/index.ts'
import type { ItemKind } from '../../model/catalog/entries.ts'

/** The MCP method that reads each list. */
export const listMethod: Readonly<Record<ItemKind, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  templates: 'resources/templates/list',
  prompts: 'prompts/list',
}

export interface ListDefect {
  readonly kind: ItemKind
  /**
   * `failed`: the list could not be read, and no earlier items are in use. `stale`: the list could not be refreshed,
   * and the last known items stay in use. `incomplete`: the items on some later pages are missing. `declaration`: the
   * list is in use, although the backend declares it incorrectly.
   */
  readonly state: 'failed' | 'stale' | 'incomplete' | 'declaration'
  /** Text for operators, which contains no text from the backend. */
  readonly problem: string
  /** The backend's own explanation, if every caller may read it. */
  readonly detail?: string | undefined
  readonly error?: Error | undefined
  /** True if the next read may succeed. */
  readonly isTransient: boolean
}

/**
 * All of a backend's declared lists failed, although the backend responded to the requests. The backend is treated as
 * unavailable only for these lists.
 */
export class ListsFailed extends GatehouseError {
  readonly kinds: readonly ItemKind[]

  constructor(code: ErrorCode, detail: string, kinds: readonly ItemKind[], cause: unknown) {
    super(code, { detail, cause })
    this.kinds = kinds
  }
}

/** Codes of errors that show that the backend responded. */
const respondedCodes: ReadonlySet<string> = new Set([
  'BACKEND_FAILED',
  'BACKEND_PROTOCOL',
  'BACKEND_RESULT_TOO_LARGE',
  'BACKEND_UNAVAILABLE',
])

/** Returns the error for a backend if all of its declared lists failed. */
export function errorOfLists(failures: readonly { readonly kind: ItemKind; readonly error: Error }[]): Error {
  const [first] = failures
  const errors = failures.map(({ error }) => error)
  const other = errors.find((error) => !(error instanceof GatehouseError && respondedCodes.has(error.code)))
  if (other || !first || !(first.error instanceof GatehouseError)) return other ?? new Error('no list')
  const kinds = failures.map(({ kind }) => kind)
  return new ListsFailed(first.error.code, first.error.message, kinds, first.error)
}

/** Describes a list that could not be read. If `isKept` is true, the last known items stay in use. */
export function unreadList(
  backend: string,
  kind: ItemKind,
  error: Error,
  { isKept, detail }: { readonly isKept: boolean; readonly detail: string | undefined },
): ListDefect {
  const consequence = isKept ? 'its last known items stay in use' : 'its items are missing'
  const problem = `${listMethod[kind]} on backend ${backend} failed: ${failureReason(error)}; ${consequence}`
  return { kind, state: isKept ? 'stale' : 'failed', problem, detail, error, isTransient: true }
}

/** Describes a list with pages that could not be read. */
export function incompleteList(
  backend: string,
  kind: ItemKind,
  { reason, error }: { readonly reason: string; readonly error?: Error | undefined },
): ListDefect {
  const why = error ? `${reason}: ${failureReason(error)}` : reason
  const problem = `${listMethod[kind]} on backend ${backend} may be incomplete: ${why}`
  return { kind, state: 'incomplete', problem, error, isTransient: error !== undefined }
}

export function undeclaredList(backend: string, kind: ItemKind, capability: string): ListDefect {
  const problem = `backend ${backend} responds to ${listMethod[kind]}, but does not declare capabilities.${capability}`
  return { kind, state: 'declaration', problem, isTransient: false }
}

export function misdeclaredList(backend: string, kind: ItemKind, capability: string): ListDefect {
  const problem = `backend ${backend} responds to ${listMethod[kind]}, but its capabilities.${capability} is not an object`
  return { kind, state: 'declaration', problem, isTransient: false }
}

/** Returns the reason why a list could not be read. The reason contains no text from the backend. */
function failureReason(error: Error): string {
  if (!(error instanceof GatehouseError)) return 'the request failed'
  const { cause } = error
  // The cause of a protocol violation contains text written by Gatehouse. All other causes are library errors.
  return error.code === 'BACKEND_PROTOCOL' && cause instanceof Error && cause.constructor === Error
    ? cause.message
    : error.message
}

const fixes: Readonly<Record<ListDefect['state'], (backend: string) => string>> = {
  failed: (backend) => `see the log of ${backend}; the list will be read again automatically`,
  stale: (backend) => `see the log of ${backend}; the list will be read again automatically`,
  incomplete: (backend) =>
    `report this to the maintainer of ${backend}; clients do not see the items on the remaining pages`,
  declaration: (backend) => `report this to the maintainer of ${backend}; clients still see the list`,
}

/** Reports each of a backend's list defects once, and also reports when a defect is resolved. */
export class ListDefectReports {
  readonly #backend: string
  readonly #events: Events
  #open: ReadonlyMap<string, ListDefect> = new Map()

  constructor(backend: string, events: Events) {
    this.#backend = backend
    this.#events = events
  }

  /** Replaces the reported defects with the defects of all listings in use. */
  report(defects: readonly ListDefect[]): void {
    const before = this.#open
    this.#open = new Map(defects.map((defect) => [defect.problem, defect]))
    for (const [problem, defect] of this.#open) if (!before.has(problem)) this.#emit(defect, 'open')
    for (const [problem, defect] of before) if (!this.#open.has(problem)) this.#emit(defect, 'resolved')
  }

  #emit({ kind, state, problem, detail, error }: ListDefect, change: 'open' | 'resolved'): void {
    const resolved = change === 'resolved'
    this.#events.emit('list_problem', {
      backend: this.#backend,
      list: listMethod[kind],
      problem,
      fix: fixes[state](this.#backend),
      resolved,
      ...(detail !== undefined && !resolved ? { detail } : {}),
      ...(error && !resolved ? { err: error } : {}),
    })
  }
}
