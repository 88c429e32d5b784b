/**
 * The address of an MCP server that runs in the cluster of the current kubeconfig, by the resource's name.
 *
 * Looks for a VirtualMCPServer, MCPServer, MCPRemoteProxy or MCPServerEntry (`kind/name` chooses) and takes its
 * `status.url`, or the entry's `spec.remoteUrl`. The Kubernetes client is loaded only when this is used.
 */
import { apiGroup, apiVersion, GatehouseError, type KindName, kindOf, kinds } from '../../../schemas/index.ts'

const candidates: readonly KindName[] = ['VirtualMCPServer', 'MCPServer', 'MCPRemoteProxy', 'MCPServerEntry']

/** Throws INVALID_CONFIG when there is no such resource, or it has no address yet. */
export async function urlOfResource(target: string, namespace: string | undefined): Promise<string> {
  const { kind, name } = split(target)
  const { KubeConfig, CustomObjectsApi } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromDefault()
  const api = config.makeApiClient(CustomObjectsApi)
  const where = namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default'
  for (const candidate of kind === undefined ? candidates : [kind]) {
    const found = await get(() =>
      api.getNamespacedCustomObject({
        group: apiGroup,
        version: apiVersion.split('/').at(-1) ?? apiVersion,
        namespace: where,
        plural: pluralOf(candidate),
        name,
      }),
    )
    const url = urlIn(found)
    if (url !== undefined) return url
    if (found !== undefined) throw refused(`${candidate} ${where}/${name} has no address yet`)
  }
  throw refused(`TARGET: no ${kind ?? 'MCP server'} called ${name} in namespace ${where}`)
}

function split(target: string): { kind: KindName | undefined; name: string } {
  const [first = '', second] = target.split('/')
  const name = second ?? first
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name)) {
    throw refused('TARGET: must be an http or https URL, or the name of a resource')
  }
  if (second === undefined) return { kind: undefined, name }
  const kind = kindOf(first)?.kind
  if (kind === undefined || !candidates.includes(kind))
    throw refused(`TARGET: the kind must be one of ${candidates.join(', ')}`)
  return { kind, name }
}

/** Undefined when the object or its definition does not exist. */
async function get(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call()
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 404) return undefined
    throw error
  }
}

function urlIn(object: unknown): string | undefined {
  const status = member(object, 'status')
  const url = member(status, 'url') ?? member(member(object, 'spec'), 'remoteUrl')
  return typeof url === 'string' && url !== '' ? url : undefined
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}

function pluralOf(kind: KindName): string {
  return kinds.find((info) => info.kind === kind)?.plural ?? `${kind.toLowerCase()}s`
}

function refused(detail: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail })
}
