/** Checks whether the gatehouse.dev resources in a cluster are reconciled, and checks their conditions. */
import { apiGroup, apiVersion, type Kind, kinds } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { ok, type CheckOutcome, failed, warning } from '../report/finding.ts'
import { joinList } from '../remote/facts.ts'
import { quantity } from '../../../toolkit/terminal/plain-text.ts'
import { conditionsOf, isProblem, isStale, isWarning } from '../../../toolkit/cluster/conditions.ts'
import { type ClusterReader, itemsOf, textAt } from '../../../toolkit/cluster/objects.ts'

export interface ClusterResource {
  readonly kind: string
  readonly object: JsonRecord
}

/** Resources that could be read, and kinds that could not be read. */
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

/** Returns ok, or unknown when some kinds could not be read. */
function okIfComplete({ unread }: ReadResources, observed: string): CheckOutcome {
  if (unread.length === 0) return ok(observed)
  return { result: 'unknown', code: 'cluster.rights', observed: `no permission to read ${joinList(unread)}` }
}

function nameOf({ kind, object }: ClusterResource): string {
  return `${kind} ${textAt(object, 'metadata', 'namespace') ?? ''}/${textAt(object, 'metadata', 'name') ?? ''}`
}

/** Fails for resources whose observed generation is outdated although they have not changed recently. */
export function checkReconciled(read: ReadResources, now = Date.now()): CheckOutcome {
  const stale = read.resources.filter(({ object }) => isStale(object, now))
  if (stale.length === 0) return okIfComplete(read, quantity(read.resources.length, 'resource'))
  return failed('cluster.stale', joinList(stale.map(nameOf)))
}

export function checkConditions(read: ReadResources): CheckOutcome {
  const bad = read.resources.flatMap((resource) =>
    conditionsOf(resource.object)
      .filter(
        (condition) =>
          (condition.type === 'Ready' && condition.status === 'False') ||
          (isProblem(condition) && !isWarning(condition)),
      )
      .map(({ type, status, reason }) => `${nameOf(resource)}: ${type} is ${status} (${reason})`),
  )
  return bad.length === 0
    ? okIfComplete(read, 'no condition reports a problem')
    : warning('cluster.condition', joinList(bad))
}
