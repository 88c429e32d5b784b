/**
 * Reads everything about an object that the caller has permission to read: references, group members, workloads, pods
 * and Events.
 */
import { memberKinds, referencesOf, type ResourcePath, type SpecReference } from '../../../hooks/index.ts'
import { type Fields, fieldsOf, type Kind, kindOf } from '../../../schemas/index.ts'
import { type ClusterView, kindPath, type NamedObject, readNamed, type Unread } from './reader.ts'
import { at, listAt, textAt } from '../../toolkit/cluster/objects.ts'

export interface ReadReference extends SpecReference {
  /** For a Secret or ConfigMap, contains only the metadata. */
  readonly found: Fields | Unread
}

export interface Workload {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly object: Fields
  readonly pods: readonly Fields[] | Unread
}

export interface ObjectFacts extends NamedObject {
  readonly namespace: string
  readonly object: Fields
  readonly references: readonly ReadReference[]
  /** The group's other members. Undefined for kinds that have no group. */
  readonly members: readonly { readonly kind: string; readonly object: Fields }[] | undefined
  /** The object's workloads with their pods. */
  readonly workloads: readonly Workload[]
  /** Missing permissions, such as `list pods`. */
  readonly withoutRight: readonly string[]
  /** Warning Events in the namespace, including those about other objects. */
  readonly events: readonly Fields[]
}

const workloadKinds = [
  { kind: 'Deployment', plural: 'deployments' },
  { kind: 'StatefulSet', plural: 'statefulsets' },
] as const

export async function readFacts(cluster: ClusterView, named: NamedObject): Promise<ObjectFacts> {
  const object = await readNamed(cluster, named)
  const withoutRight = new Set<string>()
  const { namespace } = cluster
  const listed = async (resource: ResourcePath, query?: Record<string, string>) => {
    const found = await cluster.list(resource, query)
    if (found === 'forbidden') withoutRight.add(`list ${resource.plural}`)
    return typeof found === 'string' ? [] : found
  }
  const [references, members, workloads, events] = await Promise.all([
    readReferences(cluster, object),
    readMembers(named, object, (kind) => listed(kindPath(kind, namespace))),
    ownWorkloads(cluster, object, withoutRight),
    listed({ group: '', version: 'v1', plural: 'events', namespace }, { fieldSelector: 'type=Warning' }),
  ])
  return {
    ...named,
    namespace,
    object,
    references,
    members,
    workloads,
    events,
    withoutRight: [...withoutRight],
  }
}

function readReferences(cluster: ClusterView, object: Fields): Promise<readonly ReadReference[]> {
  return Promise.all(
    referencesOf(object['spec']).map(async ({ kind, name }) => {
      const info = kindOf(kind)
      const found = info
        ? await cluster.read(kindPath(info, cluster.namespace, name))
        : await cluster.readMetadata({
            group: '',
            version: 'v1',
            plural: kind === 'Secret' ? 'secrets' : 'configmaps',
            namespace: cluster.namespace,
            name,
          })
      return { kind, name, found }
    }),
  )
}

type Listed = (kind: Kind) => Promise<readonly Fields[]>

async function readMembers(
  { kind, name }: NamedObject,
  object: Fields,
  listed: Listed,
): Promise<ObjectFacts['members']> {
  const group =
    kind.kind === 'MCPGroup'
      ? name
      : kind.kind === 'VirtualMCPServer'
        ? textAt(object, 'spec', 'groupRef', 'name')
        : undefined
  if (group === undefined) return undefined
  const lists = await Promise.all(
    memberKinds.map(async (kind) => {
      const info = kindOf(kind)
      const found = info ? await listed(info) : []
      return found
        .filter((member) => textAt(member, 'spec', 'groupRef', 'name') === group)
        .map((member) => ({ kind, object: member }))
    }),
  )
  return lists.flat()
}

/** Returns an object's workloads with their pods. */
export async function ownWorkloads(
  cluster: ClusterView,
  object: Fields,
  withoutRight: Set<string>,
): Promise<readonly Workload[]> {
  const { namespace } = cluster
  const lists = await Promise.all(
    workloadKinds.map(async ({ kind, plural }) => {
      const selector = 'gatehouse.dev/managed=true'
      const found = await cluster.list(
        { group: 'apps', version: 'v1', plural, namespace },
        { labelSelector: selector },
      )
      if (found === 'forbidden') withoutRight.add(`list ${plural}`)
      const own = typeof found === 'string' ? [] : found.filter((workload) => isOwned(workload, object))
      return own.map((workload) => ({ kind, object: workload }))
    }),
  )
  return Promise.all(
    lists.flat().map(async ({ kind, object: workload }) => {
      const query = { labelSelector: selectorOf(workload) }
      const pods = await cluster.list({ group: '', version: 'v1', plural: 'pods', namespace }, query)
      if (pods === 'forbidden') withoutRight.add('list pods')
      return { kind, object: workload, pods }
    }),
  )
}

function isOwned(child: Fields, owner: Fields): boolean {
  const uid = at(owner, 'metadata', 'uid')
  return listAt(child, 'metadata', 'ownerReferences').some((reference) => reference['uid'] === uid)
}

/** Returns a workload's selector as a query parameter. */
export function selectorOf(workload: Fields): string {
  return Object.entries(fieldsOf(at(workload, 'spec', 'selector', 'matchLabels')))
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(',')
}
