/** The resources of gatehouse.dev in a cluster: are they reconciled, and what do their conditions say? */
import { apiGroup, apiVersion, type Kind, kinds } from '../../../schemas/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'
import { ok, type CheckOutcome, failed, warning } from '../report/finding.ts'
import { listed } from '../remote/facts.ts'
import { at, type ClusterReader, itemsOf, listAt, textAt } from './read.ts'

const settledMs = 60_000

export interface ClusterResource {
  readonly kind: string
  readonly object: JsonRecord
}

/** Of every kind that may be read. */
export async function readResources(read: ClusterReader): Promise<readonly ClusterResource[]> {
  const all = await Promise.all(kinds.map((kind) => ofKind(read, kind)))
  return all.flat()
}

async function ofKind(read: ClusterReader, { kind, plural }: Kind): Promise<readonly ClusterResource[]> {
  const version = apiVersion.split('/').at(-1) ?? apiVersion
  const list = await read({ group: apiGroup, version, plural })
  return typeof list === 'string' ? [] : itemsOf(list).map((object) => ({ kind, object }))
}

function nameOf({ kind, object }: ClusterResource): string {
  return `${kind} ${textAt(object, 'metadata', 'namespace') ?? ''}/${textAt(object, 'metadata', 'name') ?? ''}`
}

/** The generation is behind although nobody has changed the object for a while. */
export function checkReconciled(resources: readonly ClusterResource[], now = Date.now()): CheckOutcome {
  const stale = resources.filter(({ object }) => isStale(object, now))
  if (stale.length === 0) return ok(`${resources.length} resources`)
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

export function checkConditions(resources: readonly ClusterResource[]): CheckOutcome {
  const bad = resources.flatMap((resource) =>
    listAt(resource.object, 'status', 'conditions')
      .filter(({ status }) => status === 'False')
      .map((one) => `${nameOf(resource)}: ${String(one['type'])} is False (${String(one['reason'])})`),
  )
  return bad.length === 0 ? ok('no condition is False') : warning('cluster.condition', listed(bad))
}
