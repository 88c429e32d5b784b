/**
 * Reads all lists of one backend: tools, resources, resource templates and prompts.
 *
 * Each list is read independently. If one list fails or ends early, the other lists are still complete. `violations`
 * contains problems with items. `defects` contains problems with whole lists.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { ListKind, ServerInfo } from '../backends/connection.ts'
import { ErrorCollector, type ListErrors } from './items/errors.ts'
import { callableTool } from './items/check.ts'
import {
  errorOfLists,
  incompleteList,
  type ListDefect,
  misdeclaredList,
  undeclaredList,
  unreadList,
} from './lists/list-defects.ts'
import { type ListReadOptions, readList } from './lists/list-pages.ts'
import { digestsOf } from './pinning/digest.ts'
import type { PinDigests, PinReason } from '../model/catalog/pinning.ts'
import { maxInstructions } from './instructions.ts'
import { asError, isConnectionClosed, isRefusal, shownDetail } from './read-failure.ts'
import type { CatalogItem, ItemKind, ToolItem } from '../model/catalog/entries.ts'

export interface Listing {
  readonly backend: string
  /** Serial number that is unique among all listings read in this process. */
  readonly serial: number
  readonly server: ServerInfo
  readonly tools: readonly ToolItem[]
  readonly resources: readonly CatalogItem[]
  readonly templates: readonly CatalogItem[]
  readonly prompts: readonly CatalogItem[]
  /** The backend's skills. Present only if a command has read them in addition to the lists. */
  readonly skills?: readonly CatalogItem[]
  readonly violations: ListErrors
  /** Problems with whole lists. Undefined if there are no such problems. */
  readonly defects?: readonly ListDefect[]
  /** True if clients see `ui://` addresses that begin with the backend's name. */
  readonly prefixesPages?: boolean
  /** True if clients see `skill://` addresses that begin with the backend's name. */
  readonly prefixesSkills?: boolean
  /** Reason why pinning blocks the whole backend. */
  readonly closed?: PinReason
  /** Digests of the server's instructions. Present only if pinning is enabled and the server has instructions. */
  readonly instructionsPin?: PinDigests
}

/** Maximum time for the remaining lists after the first list has been read, if no earlier listing can be used. */
const slowListMs = 5_000
/** Additional time for undeclared lists after all declared lists have been read. */
const undeclaredListMs = 1_000

const kinds: readonly ItemKind[] = ['tools', 'resources', 'templates', 'prompts']

let serial = 0

export interface ListingOptions extends ListReadOptions {
  readonly backend: string
  readonly server: ServerInfo
  /** True if responses may depend on the caller. */
  readonly perCaller: boolean
  /** The last listing. A list in this listing stays in use if the list cannot be reread. */
  readonly before?: Listing | undefined
  /** Undeclared lists that the backend does not have. Each read of a listing may add lists to this set. */
  readonly absent: Set<ItemKind>
}

/** A list, with the items that are used for it. The items can come from an earlier read. */
interface UsedList {
  readonly kind: ItemKind
  readonly items: readonly CatalogItem[]
  readonly defects: readonly ListDefect[]
  /** Error of the read. Undefined if the read succeeded. */
  readonly failure?: Error | undefined
}

/**
 * Reads a listing. Rejects with a BACKEND_* error if every declared list failed. The error is ListsFailed if the
 * backend responded. Otherwise, it is the error from one of the lists.
 */
export async function readListing(options: ListingOptions): Promise<Listing> {
  const { backend, server, pins } = options
  const violations = new ErrorCollector(backend)
  if ((server.instructions?.length ?? 0) > maxInstructions) violations.instructionsShortened(maxInstructions)
  for (const problem of server.extensionProblems ?? []) violations.extensionIgnored(problem)
  const { expected, optional } = await readLists(options, violations)
  const failures = expected.flatMap(({ kind, failure: error }) => (error ? [{ kind, error }] : []))
  const closed = failures.find(({ error }) => isConnectionClosed(error))
  if (closed) throw closed.error
  if (failures.length > 0 && failures.length === expected.length) throw errorOfLists(failures)
  const lists = [...expected, ...optional]
  const itemsOf = (kind: ItemKind): readonly CatalogItem[] =>
    lists.find((list) => list.kind === kind)?.items ?? []
  const defects = lists.flatMap((list) => list.defects)
  const instructions = pins && server.instructions
  return {
    backend,
    serial: ++serial,
    server: withFoundLists(server, lists),
    tools: itemsOf('tools').flatMap((item) => callableTools(item, violations)),
    resources: itemsOf('resources'),
    templates: itemsOf('templates'),
    prompts: itemsOf('prompts'),
    violations: violations.all,
    ...(defects.length > 0 && { defects }),
    ...(instructions === undefined
      ? {}
      : {
          instructionsPin: await digestsOf('instructions', Buffer.from(JSON.stringify(instructions))),
        }),
  }
}

/** Returns a list that contains the tool, or an empty list if the tool's arguments are mirrored incorrectly. */
function callableTools(item: CatalogItem, violations: ErrorCollector): ToolItem[] {
  const tool = callableTool(item)
  if (typeof tool !== 'string') return [tool]
  violations.leftOut('tools', item.key, tool)
  return []
}

function capabilityOf(kind: ItemKind): ListKind {
  return kind === 'templates' ? 'resources' : kind
}

function isDeclared(kind: ItemKind, { capabilities }: ServerInfo): boolean {
  return capabilities[capabilityOf(kind)]
}

/** Returns the server information. Adds capabilities for undeclared lists that exist on the server. */
function withFoundLists(server: ServerInfo, lists: readonly UsedList[]): ServerInfo {
  const found = lists.filter(({ kind, items }) => items.length > 0 && !isDeclared(kind, server))
  if (found.length === 0) return server
  const capabilities = Object.fromEntries(found.map(({ kind }) => [capabilityOf(kind), true]))
  return { ...server, capabilities: { ...server.capabilities, ...capabilities } }
}

interface ListGroups {
  readonly expected: readonly UsedList[]
  /** Undeclared lists, which the backend might not have. */
  readonly optional: readonly UsedList[]
}

/**
 * Reads the lists concurrently. A list that takes much longer than the other lists is treated as failed. Lists that the
 * backend does not declare are requested too. If such a request fails, the backend does not have the list.
 */
async function readLists(options: ListingOptions, violations: ErrorCollector): Promise<ListGroups> {
  const { server, absent, before } = options
  const declared = kinds.filter(
    (kind) => isDeclared(kind, server) || (before !== undefined && isUndeclaredIn(before, kind)),
  )
  const late = new LateLists()
  const read = (kind: ItemKind, group: Group): Promise<UsedList> =>
    readOne({ ...options, signal: late.signal(options.signal, group) }, kind, violations)
  const probe = (kind: ItemKind, group: Group): Promise<UsedList> =>
    read(kind, group).then((list) => finishProbe(list, absent))
  const expected =
    declared.length > 0 ? declared.map((kind) => read(kind, 'expected')) : [probe('tools', 'expected')]
  const optional = kinds.filter(
    (kind) => !declared.includes(kind) && !absent.has(kind) && (declared.length > 0 || kind !== 'tools'),
  )
  const probes = optional.map((kind) => probe(kind, 'optional'))
  // If an earlier listing exists, no client waits for this read.
  if (!before) void firstRead(expected).then((isRead) => isRead && late.abortAfter(slowListMs, 'expected'))
  void Promise.all(expected).then(() => late.abortAfter(undeclaredListMs, 'optional'))
  try {
    return { expected: await Promise.all(expected), optional: await Promise.all(probes) }
  } finally {
    late.end()
  }
}

/** Resolves to true once a list has been read, or to false if none was read. */
async function firstRead(lists: readonly Promise<UsedList>[]): Promise<boolean> {
  const read = lists.map(async (list) => {
    const { failure } = await list
    if (failure) throw failure
    return true
  })
  return Promise.any(read).catch(() => false)
}

type Group = 'expected' | 'optional'

/** Aborts list requests that take too long. */
class LateLists {
  readonly #controllers: Readonly<Record<Group, AbortController>> = {
    expected: new AbortController(),
    optional: new AbortController(),
  }
  readonly #timers = new Set<NodeJS.Timeout>()
  #isOver = false

  signal(outer: AbortSignal, group: Group): AbortSignal {
    return AbortSignal.any([outer, this.#controllers[group].signal])
  }

  abortAfter(ms: number, group: Group): void {
    if (this.#isOver) return
    const timeout = (): void => this.#controllers[group].abort(new GatehouseError('BACKEND_TIMEOUT'))
    this.#timers.add(setTimeout(timeout, ms))
  }

  end(): void {
    this.#isOver = true
    for (const timer of this.#timers) clearTimeout(timer)
  }
}

/** Reads one list. Never rejects. */
async function readOne(
  options: ListingOptions,
  kind: ItemKind,
  violations: ErrorCollector,
): Promise<UsedList> {
  const { backend, before } = options
  const declaration = declarationDefect(options, kind)
  try {
    const { items, end } = await readList(options, kind, violations)
    // Use the complete earlier list instead of the first pages of a new list.
    if (end?.error && usableItems(before, kind, end.error, 'complete'))
      return makeFailedList(options, kind, end.error)
    const defects = [
      ...(declaration && items.length > 0 ? [declaration] : []),
      ...(end ? [incompleteList(backend, kind, end)] : []),
    ]
    return { kind, items, defects }
  } catch (thrown) {
    return makeFailedList(options, kind, asError(thrown))
  }
}

/**
 * Returns the result for a list that could not be read. The last items stay in use unless the caller is no longer
 * allowed to see them.
 */
function makeFailedList(
  { backend, before, perCaller }: ListingOptions,
  kind: ItemKind,
  failure: Error,
): UsedList {
  const detail = shownDetail(failure, perCaller)
  const kept = usableItems(before, kind, failure, 'any')
  return {
    kind,
    items: kept ?? [],
    defects: [unreadList(backend, kind, failure, { isKept: kept !== undefined, detail })],
    failure,
  }
}

function usableItems(
  before: Listing | undefined,
  kind: ItemKind,
  failure: Error,
  wanted: 'complete' | 'any',
): readonly CatalogItem[] | undefined {
  if (!before || isRefusal(failure)) return undefined
  const { defects = [] } = before
  const isUnusable = defects.some(
    (defect) =>
      defect.kind === kind &&
      (defect.state === 'failed' || (wanted === 'complete' && defect.state === 'incomplete')),
  )
  return isUnusable ? undefined : before[kind]
}

/**
 * Handles an undeclared list. An undeclared list without items is not requested again, and its failures are not
 * reported.
 */
function finishProbe(list: UsedList, absent: Set<ItemKind>): UsedList {
  const { kind, items, failure } = list
  if (items.length > 0) return list
  // Nearly every backend has tools, so a failure may be temporary.
  if (!failure || kind !== 'tools') absent.add(kind)
  return { kind, items: [], defects: [] }
}

/** True if an earlier listing has items in a list that the backend does not declare. */
function isUndeclaredIn(before: Listing, kind: ItemKind): boolean {
  const { defects = [] } = before
  return before[kind].length > 0 && defects.some((one) => one.kind === kind && one.state === 'declaration')
}

function declarationDefect({ backend, server }: ListingOptions, kind: ItemKind): ListDefect | undefined {
  const capability = capabilityOf(kind)
  if (!server.capabilities[capability]) return undeclaredList(backend, kind, capability)
  return server.capabilities.misdeclared?.includes(capability)
    ? misdeclaredList(backend, kind, capability)
    : undefined
}

/**
 * Lifetimes of listings in milliseconds. The first lifetime applies to a backend that announces changes to all of its
 * lists, and the second applies to all other backends.
 */
export const announcedMs = 5 * 60_000
export const unannouncedMs = 30_000

export function lifetimeOf({ server }: Listing): number {
  const { capabilities } = server
  const announced = (['tools', 'resources', 'prompts'] as const).every(
    (kind) => !capabilities[kind] || capabilities.listChanged.has(kind),
  )
  return announced ? announcedMs : unannouncedMs
}

/** True if some lists could not be read. Failed lists are reread after a pause. */
export function hasFailedLists({ defects = [] }: Listing): boolean {
  return defects.some(({ isTransient }) => isTransient)
}

/** True if some lists still use items from an earlier read. */
export function hasStaleLists({ defects = [] }: Listing): boolean {
  return defects.some(({ state }) => state === 'stale')
}

/**
 * True if no client should wait for the next read. Either the last items are in use, or the failed read lasted for the
 * whole timeout.
 */
export function isSlowToRepair({ defects = [] }: Listing): boolean {
  return defects.some(
    ({ isTransient, state, error }) => isTransient && (state !== 'failed' || isTimeout(error)),
  )
}

function isTimeout(error: Error | undefined): boolean {
  return error instanceof GatehouseError && error.code === 'BACKEND_TIMEOUT'
}
