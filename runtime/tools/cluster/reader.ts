/** What the commands of a cluster read. What may not be read is a result; a cluster that does not respond is an error. */
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

/** The flags that every command has. */
export interface ClusterFlags {
  readonly namespace?: string
  readonly context?: string
  readonly kubeconfig?: string
}

/** Of the object: the caller has no right to read it, or there is none. */
export type Unread = 'forbidden' | 'absent'

export interface ClusterView {
  /** Of the flag, of the context, or default. */
  readonly namespace: string
  readonly context: string
  read(resource: ResourcePath, query?: Readonly<Record<string, string>>): Promise<Fields | Unread>
  /** Without content. */
  readMetadata(resource: ResourcePath): Promise<Fields | Unread>
  /** Ends after `most` objects. */
  list(resource: ResourcePath, query?: Readonly<Record<string, string>>): Promise<readonly Fields[] | Unread>
  pages(resource: ResourcePath): AsyncGenerator<readonly Fields[] | Unread>
}

/** More of one kind are not looked at for one object. */
const mostListed = 2_000

export async function openCluster({ namespace, context, kubeconfig }: ClusterFlags): Promise<ClusterView> {
  const access = await clusterAccess({
    context: context ?? true,
    subject: context === undefined ? '--kubeconfig' : '--context',
    absent: 'there is no kubeconfig; name one here, or in KUBECONFIG',
    kubeconfig,
  })
  const checked = (status: number | undefined): Unread => {
    const failure = failureOf(status)
    if (failure === 'forbidden' || failure === 'absent') return failure
    throw refused(access, failure, status)
  }
  async function* pages(resource: ResourcePath, query?: Readonly<Record<string, string>>) {
    for await (const page of pagesOf(access.get, resource, query)) {
      yield page.items ?? checked(page.status)
    }
  }
  async function single(get: Promise<{ status: number; body: Fields }>): Promise<Fields | Unread> {
    const answer = await get.catch(() => undefined)
    return answer !== undefined && answer.status < 300 ? answer.body : checked(answer?.status)
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
        if (found.length >= mostListed) break
      }
      return found
    },
  }
}

function refused(
  { server, context }: ClusterAccess,
  failure: string,
  status: number | undefined,
): GatehouseError {
  const cluster = `the cluster ${server} (context ${context})`
  if (failure === 'unauthorized')
    return new GatehouseError('UNAUTHENTICATED', {
      detail: `${cluster} does not accept your credentials: sign in again`,
    })
  const what = status === undefined ? 'does not respond' : `answers ${status}`
  return new GatehouseError('BACKEND_UNREACHABLE', {
    detail: `${cluster} ${what}: check the context and the network`,
  })
}

/** Lists of a kind of gatehouse.dev; all namespaces without one. */
export function kindPath({ plural }: Pick<Kind, 'plural'>, namespace?: string, name?: string): ResourcePath {
  return { group: apiGroup, version: apiVersion.split('/').at(-1) ?? apiVersion, plural, namespace, name }
}

export interface NamedObject {
  readonly kind: Kind
  readonly name: string
}

/** `KIND/NAME`, the kind as kubectl takes it. Throws INVALID_CONFIG. */
export function parseNamed(text: string): NamedObject {
  const [first = '', name = '', more] = text.split('/')
  const kind = kindOf(first)
  if (more !== undefined || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name)) {
    throw invalidConfig(`${JSON.stringify(text)}: must be KIND/NAME, such as vmcp/tools`)
  }
  if (!kind) {
    const known = kinds.map(({ singular, shortNames }) => shortNames[0] ?? singular)
    throw invalidConfig(`${JSON.stringify(text)}: no such kind; known: ${known.join(', ')}`)
  }
  return { kind, name }
}

/** The object itself. Throws NOT_FOUND. */
export async function readNamed(cluster: ClusterView, { kind, name }: NamedObject): Promise<Fields> {
  const found = await cluster.read(kindPath(kind, cluster.namespace, name))
  if (typeof found !== 'string') return found
  const where = `in namespace ${cluster.namespace} (context ${cluster.context})`
  throw new GatehouseError('NOT_FOUND', {
    detail:
      found === 'forbidden'
        ? `no right to get ${kind.plural} ${where}`
        : `there is no ${kind.kind} ${name} ${where}`,
  })
}
