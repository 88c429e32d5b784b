/**
 * The address of an MCP server that runs in the cluster of the current kubeconfig, by the resource's name.
 *
 * Looks for a VirtualMCPServer, MCPServer, MCPRemoteProxy or MCPServerEntry and takes its `status.url`, or the entry's
 * `spec.remoteUrl`. A name that several of them have is refused; `kind/name` chooses. The Kubernetes client is loaded
 * only when this is used.
 */
import {
  apiGroup,
  apiVersion,
  GatehouseError,
  type KindName,
  kindOf,
  kinds,
  invalidConfig,
} from '../../../schemas/index.ts'
import { clusterAccess } from '../cluster/kubeconfig.ts'

const candidates: readonly KindName[] = ['VirtualMCPServer', 'MCPServer', 'MCPRemoteProxy', 'MCPServerEntry']

interface Found {
  readonly kind: KindName
  /** Undefined: there is none of this name. */
  readonly object?: unknown
  readonly forbidden?: true
}

/**
 * Throws INVALID_CONFIG for a name that cannot be one or names several resources, NOT_FOUND when there is none or it has
 * no address yet, BACKEND_UNREACHABLE when the cluster does not answer.
 */
export async function urlOfResource(target: string, namespace: string | undefined): Promise<string> {
  const { kind, name } = split(target)
  const cluster = await connect(target, namespace)
  const all = await Promise.all(
    (kind === undefined ? candidates : [kind]).map((one) => cluster.find(one, name)),
  )
  const found = all.filter(({ object }) => object !== undefined)
  const [first, second] = found
  if (second) {
    const ways = found.map((one) => `${one.kind.toLowerCase()}/${name}`).join(' or ')
    throw invalidConfig(
      `TARGET: ${name} names several resources in namespace ${cluster.namespace}: write ${ways}`,
    )
  }
  if (!first) {
    const forbidden = all.filter((one) => one.forbidden).map((one) => pluralOf(one.kind))
    throw notFound(
      `no ${kind ?? 'MCP server'} called ${name} in namespace ${cluster.namespace} (context ${cluster.context})` +
        (forbidden.length > 0 ? `; you may not read ${forbidden.join(', ')} there` : ''),
    )
  }
  const url = urlIn(first)
  if (url === undefined) throw notFound(`${first.kind} ${cluster.namespace}/${name} has no address yet`)
  return url
}

/** What to say, with the next step, when nobody can be reached there. A query may hold a secret. */
export function unreachableText(url: URL): string {
  const what = 'the server could not be reached'
  if (!/\.svc(?:\.|$)/.test(url.hostname))
    return `${what}; "gatehouse doctor ${url.origin}${url.pathname}" finds out why`
  const [service = '', namespace = ''] = url.hostname.split('.')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return (
    `${what}: this address exists inside the cluster only; from outside, forward a port and give its URL:\n` +
    `  kubectl port-forward -n ${namespace} service/${service} 8080:${port}   (http://127.0.0.1:8080${url.pathname})`
  )
}

interface Cluster {
  readonly namespace: string
  readonly context: string
  find(kind: KindName, name: string): Promise<Found>
}

async function connect(target: string, namespace: string | undefined): Promise<Cluster> {
  const absent = `${target} is no http or https URL, and there is no kubeconfig to look it up in as a resource`
  const { get, context, server, ...access } = await clusterAccess({
    context: true,
    subject: 'TARGET',
    absent,
  })
  const where = namespace ?? access.namespace ?? 'default'
  const version = apiVersion.split('/').at(-1) ?? apiVersion
  const unreachable = (what: string, cause?: unknown) =>
    new GatehouseError('BACKEND_UNREACHABLE', {
      detail: `the cluster ${server} (context ${context}) ${what}`,
      cause,
    })
  return {
    namespace: where,
    context,
    async find(kind, name) {
      const resource = { group: apiGroup, version, namespace: where, plural: pluralOf(kind), name }
      const { status, body } = await get(resource).catch((error: unknown) => {
        throw unreachable('does not answer', error)
      })
      // The object or its definition does not exist.
      if (status === 404) return { kind }
      if (status === 403) return { kind, forbidden: true }
      if (status === 401) throw unreachable('does not accept your credentials')
      if (status >= 300) throw unreachable(`answers ${status}`)
      return { kind, object: body }
    },
  }
}

function split(target: string): { kind: KindName | undefined; name: string } {
  const [first = '', second, more] = target.split('/')
  const name = second ?? first
  if (more !== undefined || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name)) {
    throw invalidConfig('TARGET: must be an http or https URL, or the name of a resource')
  }
  if (second === undefined) return { kind: undefined, name }
  const kind = kindOf(first)?.kind
  if (kind === undefined || !candidates.includes(kind))
    throw invalidConfig(`TARGET: the kind must be one of ${candidates.join(', ')}`)
  return { kind, name }
}

/** An entry stands for a server elsewhere. The `remoteUrl` of a proxy is what it guards, and no way around it. */
function urlIn({ kind, object }: Found): string | undefined {
  const url =
    kind === 'MCPServerEntry'
      ? member(member(object, 'spec'), 'remoteUrl')
      : member(member(object, 'status'), 'url')
  return typeof url === 'string' && URL.canParse(url) ? url : undefined
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}

function pluralOf(kind: KindName): string {
  return kinds.find((info) => info.kind === kind)?.plural ?? `${kind.toLowerCase()}s`
}

function notFound(detail: string): GatehouseError {
  return new GatehouseError('NOT_FOUND', { detail: `TARGET: ${detail}` })
}
