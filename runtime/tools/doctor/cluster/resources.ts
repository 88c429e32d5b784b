/** The resources of gatehouse.dev in a cluster: are they reconciled, and what do their conditions say? */
import { apiGroup, apiVersion, type Kind, kinds } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { ok, type CheckOutcome, failed, warning } from '../report/finding.ts'
import { listed } from '../remote/facts.ts'
import { conditionsOf, isProblem, isStale, isWarning } from '../../../toolkit/cluster/conditions.ts'
import { type ClusterReader, itemsOf, textAt } from '../../../toolkit/cluster/objects.ts'

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
