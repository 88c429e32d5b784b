/**
 * Reads objects for the cluster commands. A missing permission is a result, not an error. The functions throw if the
 * cluster does not respond.
 */
import {
  apiGroup,
  apiVersion,
  type Fields,
  GatehouseError,
  invalidConfig,
  type Kind,
  kindOf,
  kinds,
} from '../../../schemas/index.ts'
import type { ResourcePath } from '../../../hooks/index.ts'
import { type ClusterAccess, clusterAccess, failureOf, pagesOf } from '../../toolkit/cluster/kubeconfig.ts'

/** Flags shared by all cluster commands. */
export interface ClusterFlags {
  readonly namespace?: string
  readonly context?: string
  readonly kubeconfig?: string
}

/** The caller has no permission to read the object, or the object does not exist. */
export type Unread = 'forbidden' | 'absent'

export interface ClusterView {
  /** Taken from the flag or the context; otherwise `default`. */
  readonly namespace: string
  readonly context: string
  read(resource: ResourcePath, query?: Readonly<Record<string, string>>): Promise<Fields | Unread>
  /** Reads only the metadata. */
  readMetadata(resource: ResourcePath): Promise<Fields | Unread>
  /** Stops after `maxListed` objects. */
  list(resource: ResourcePath, query?: Readonly<Record<string, string>>): Promise<readonly Fields[] | Unread>
  pages(resource: ResourcePath): AsyncGenerator<readonly Fields[] | Unread>
}

/** Maximum number of objects of each kind to read for one object. */
const maxListed = 2_000

export async function openCluster({ namespace, context, kubeconfig }: ClusterFlags): Promise<ClusterView> {
  const access = await clusterAccess({
    context: context ?? true,
    subject: context === undefined ? '--kubeconfig' : '--context',
    absent: 'no kubeconfig found; set --kubeconfig or the environment variable KUBECONFIG',
    kubeconfig,
  })
  const unreadOrThrow = (status: number | undefined): Unread => {
    const failure = failureOf(status)
    if (failure === 'forbidden' || failure === 'absent') return failure
    throw accessError(access, failure, status)
  }
  async function* pages(resource: ResourcePath, query?: Readonly<Record<string, string>>) {
    for await (const page of pagesOf(access.get, resource, query)) {
      yield page.items ?? unreadOrThrow(page.status)
    }
  }
  async function single(get: Promise<{ status: number; body: Fields }>): Promise<Fields | Unread> {
    const answer = await get.catch(() => undefined)
    return answer !== undefined && answer.status < 300 ? answer.body : unreadOrThrow(answer?.status)
  }
  return {
    namespace: namespace ?? access.namespace ?? 'default',
    context: access.context,
    read: (resource, query) => single(access.get(resource, query)),
    readMetadata: (resource) => single(access.getMetadata(resource)),
    pages: (resource) => pages(resource),
    async list(resource, query) {
      const found: Fields[] = []
      for await (const page of pages(resource, query)) {
        if (typeof page === 'string') return found.length > 0 ? found : page
        found.push(...page)
        if (found.length >= maxListed) break
      }
      return found
    },
  }
}

function accessError(
  { server, context }: ClusterAccess,
  failure: string,
  status: number | undefined,
): GatehouseError {
  const cluster = `the cluster ${server} (context ${context})`
  if (failure === 'unauthorized')
    return new GatehouseError('UNAUTHENTICATED', {
      detail: `${cluster} rejected your credentials: log in again`,
    })
  const what = status === undefined ? 'did not respond' : `responded with status ${status}`
  return new GatehouseError('BACKEND_UNREACHABLE', {
    detail: `${cluster} ${what}: check the context and the network`,
  })
}

/** Returns the API path for a gatehouse.dev kind. Without a namespace, the path covers all namespaces. */
export function kindPath({ plural }: Pick<Kind, 'plural'>, namespace?: string, name?: string): ResourcePath {
  return { group: apiGroup, version: apiVersion.split('/').at(-1) ?? apiVersion, plural, namespace, name }
}

export interface NamedObject {
  readonly kind: Kind
  readonly name: string
}

/** Parses `KIND/NAME`, where KIND is any name that kubectl accepts for a kind. Throws INVALID_CONFIG. */
export function parseNamed(text: string): NamedObject {
  const [first = '', name = '', more] = text.split('/')
  const kind = kindOf(first)
  if (more !== undefined || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name)) {
    throw invalidConfig(`${JSON.stringify(text)}: must be KIND/NAME, such as vmcp/tools`)
  }
  if (!kind) {
    const known = kinds.map(({ singular, shortNames }) => shortNames[0] ?? singular)
    throw invalidConfig(`${JSON.stringify(text)}: unknown kind; expected one of ${known.join(', ')}`)
  }
  return { kind, name }
}

/** Reads the object. Throws NOT_FOUND. */
export async function readNamed(cluster: ClusterView, { kind, name }: NamedObject): Promise<Fields> {
  const found = await cluster.read(kindPath(kind, cluster.namespace, name))
  if (typeof found !== 'string') return found
  const where = `in namespace ${cluster.namespace} (context ${cluster.context})`
  throw new GatehouseError('NOT_FOUND', {
    detail:
      found === 'forbidden'
        ? `no permission to get ${kind.plural} ${where}`
        : `there is no ${kind.kind} ${name} ${where}`,
  })
}
