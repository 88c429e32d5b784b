/**
 * Finds an MCP server's address by resource name in the current kubeconfig context's cluster.
 *
 * Looks for a VirtualMCPServer, MCPServer, MCPRemoteProxy or MCPServerEntry, and returns its `status.url`, or the
 * entry's `spec.remoteUrl`. A name that several kinds use is an error; `kind/name` selects one of them. Loads the
 * Kubernetes client on demand.
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

interface Lookup {
  readonly kind: KindName
  /** Undefined when no object has this name. */
  readonly object?: unknown
  readonly forbidden?: true
}

/**
 * Throws INVALID_CONFIG for an invalid or ambiguous name, and NOT_FOUND when the resource does not exist or has no
 * address yet. Throws BACKEND_UNREACHABLE when the cluster does not respond.
 */
export async function urlOfResource(target: string, namespace: string | undefined): Promise<string> {
  const { kind, name } = split(target)
  const cluster = await connect(target, namespace)
  const all = await Promise.all(
    (kind === undefined ? candidates : [kind]).map((candidate) => cluster.find(candidate, name)),
  )
  const found = all.filter(({ object }) => object !== undefined)
  const [first, second] = found
  if (second) {
    const ways = found.map((one) => `${one.kind.toLowerCase()}/${name}`).join(' or ')
    throw invalidConfig(`TARGET: ${name} is ambiguous in namespace ${cluster.namespace}: write ${ways}`)
  }
  if (!first) {
    const forbidden = all.filter((one) => one.forbidden).map((one) => pluralOf(one.kind))
    throw notFound(
      `no ${kind ?? 'MCP server'} named ${name} in namespace ${cluster.namespace} (context ${cluster.context})` +
        (forbidden.length > 0 ? `; you have no permission to read ${forbidden.join(', ')} there` : ''),
    )
  }
  const url = urlIn(first)
  if (url === undefined) throw notFound(`${first.kind} ${cluster.namespace}/${name} has no address yet`)
  return url
}

/** The proxy's error for a server that it cannot reach. */
export const unreachable = 'the server could not be reached'

/**
 * Returns an error message with the next step for an unreachable server. Omits the query, which can contain a secret.
 */
export function unreachableText(url: URL): string {
  if (!/\.svc(?:\.|$)/.test(url.hostname))
    return `${unreachable}; run "gatehouse doctor ${url.origin}${url.pathname}" to find the cause`
  const [service = '', namespace = ''] = url.hostname.split('.')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return (
    `${unreachable}: this address exists only inside the cluster; forward a port and use its URL:\n` +
    `  kubectl port-forward -n ${namespace} service/${service} 8080:${port}   (http://127.0.0.1:8080${url.pathname})`
  )
}

interface Cluster {
  readonly namespace: string
  readonly context: string
  find(kind: KindName, name: string): Promise<Lookup>
}

async function connect(target: string, namespace: string | undefined): Promise<Cluster> {
  const absent = `${target} is not an http or https URL, and there is no kubeconfig in which to look it up as a resource`
  const { get, context, server, ...access } = await clusterAccess({
    context: true,
    subject: 'TARGET',
    absent,
  })
  const where = namespace ?? access.namespace ?? 'default'
  const version = apiVersion.split('/').at(-1) ?? apiVersion
  const failed = (what: string, cause?: unknown) =>
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
        throw failed('did not respond', error)
      })
      // Either the object or its definition does not exist.
      if (status === 404) return { kind }
      if (status === 403) return { kind, forbidden: true }
      if (status === 401) throw failed('rejected your credentials')
      if (status >= 300) throw failed(`responded with status ${status}`)
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

/**
 * An entry refers to a server outside the cluster. The `remoteUrl` of a proxy is not returned, because that would
 * bypass the proxy.
 */
function urlIn({ kind, object }: Lookup): string | undefined {
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
