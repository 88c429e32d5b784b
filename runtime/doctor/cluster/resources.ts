/** The resources of gatehouse.dev in a cluster: are they reconciled, and what do their conditions say? */
import { apiGroup, apiVersion, type Kind, kinds } from '../../../schemas/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'
import { reasonRow } from '../../../schemas/reasons/index.ts'
import { ok, type CheckOutcome, failed, warning } from '../report/finding.ts'
import { listed } from '../remote/facts.ts'
import { at, type ClusterReader, itemsOf, listAt, textAt } from './read.ts'

const settledMs = 60_000

export interface ClusterResource {
  readonly kind: string
  readonly object: JsonRecord
}

/** What could be read, and of which kinds nothing could be. */
export interface ReadResources {
  readonly resources: readonly ClusterResource[]
  readonly unread: readonly string[]
}

export async function readResources(read: ClusterReader): Promise<ReadResources> {
  const all = await Promise.all(kinds.map(async (kind) => ({ kind, found: await ofKind(read, kind) })))
  return {
    resources: all.flatMap(({ found }) => found ?? []),
    unread: all.flatMap(({ kind, found }) => (found ? [] : [kind.plural])),
  }
}

async function ofKind(
  read: ClusterReader,
  { kind, plural }: Kind,
): Promise<readonly ClusterResource[] | undefined> {
  const version = apiVersion.split('/').at(-1) ?? apiVersion
  const list = await read({ group: apiGroup, version, plural })
  return typeof list === 'string' ? undefined : itemsOf(list).map((object) => ({ kind, object }))
}

/** All is well with what was read, which may not be all. */
function fine({ unread }: ReadResources, observed: string): CheckOutcome {
  if (unread.length === 0) return ok(observed)
  return { result: 'unknown', code: 'cluster.rights', observed: `${listed(unread)} may not be read` }
}

function nameOf({ kind, object }: ClusterResource): string {
  return `${kind} ${textAt(object, 'metadata', 'namespace') ?? ''}/${textAt(object, 'metadata', 'name') ?? ''}`
}

/** The generation is behind although nobody has changed the object for a while. */
export function checkReconciled(read: ReadResources, now = Date.now()): CheckOutcome {
  const stale = read.resources.filter(({ object }) => isStale(object, now))
  if (stale.length === 0) return fine(read, `${read.resources.length} resources`)
  return failed('cluster.stale', listed(stale.map(nameOf)))
}

/** Nobody reconciles it: what the status is of is behind, and has been for a while. */
export function isStale(object: JsonRecord, now = Date.now()): boolean {
  return isBehind(object) && now - changedAt(object) > settledMs
}

/** The status is not of the present generation. */
export function isBehind(object: JsonRecord): boolean {
  const generation = at(object, 'metadata', 'generation')
  const observed = at(object, 'status', 'observedGeneration')
  return typeof generation === 'number' && (typeof observed !== 'number' || observed < generation)
}

/** When anything but the status was written last. */
function changedAt(object: JsonRecord): number {
  const times = listAt(object, 'metadata', 'managedFields')
    .filter((entry) => entry['subresource'] !== 'status')
    .map((entry) => Date.parse(textAt(entry, 'time') ?? ''))
  const created = Date.parse(textAt(object, 'metadata', 'creationTimestamp') ?? '')
  return Math.max(...[created, ...times].filter((time) => !Number.isNaN(time)), 0)
}

export interface ResourceCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export function conditionsOf(object: JsonRecord): readonly ResourceCondition[] {
  return listAt(object, 'status', 'conditions').map((one) => ({
    type: textAt(one, 'type') ?? '',
    status: textAt(one, 'status') ?? 'Unknown',
    reason: textAt(one, 'reason') ?? '',
    message: textAt(one, 'message') ?? '',
  }))
}

/** A condition tells of a problem when the table of reasons has its reason: some are good while they are False. */
export function isProblem({ type, status, reason }: ResourceCondition): boolean {
  if (type === 'Reconciling' || type === 'Stalled')
    return status === 'True' && reasonRow(reason) !== undefined
  if (reasonRow(reason) !== undefined) return true
  return type === 'Valid' && status === 'False'
}

/** Nothing is broken, but who wrote the manifest should know. */
export function isWarning({ status, reason, type }: ResourceCondition): boolean {
  return reasonRow(reason)?.isWarning === true || (type === 'Ready' && status === 'True')
}

export function checkConditions(read: ReadResources): CheckOutcome {
  const bad = read.resources.flatMap((resource) =>
    conditionsOf(resource.object)
      .filter(
        (one) => (one.type === 'Ready' && one.status === 'False') || (isProblem(one) && !isWarning(one)),
      )
      .map(({ type, status, reason }) => `${nameOf(resource)}: ${type} is ${status} (${reason})`),
  )
  return bad.length === 0
    ? fine(read, 'no condition tells of a problem')
    : warning('cluster.condition', listed(bad))
}
