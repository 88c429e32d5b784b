/**
 * The objects of a large installation: namespaces with virtual servers and their referenced objects, and one namespace
 * with a single virtual server of many backends.
 *
 * Of the other objects in a namespace, half are remote entries; a tenth each are workloads (MCPServer and
 * MCPRemoteProxy, half of each), groups, and three kinds of settings. Virtual servers and members are distributed
 * evenly over the groups and settings.
 */
import { apiVersion, kinds } from '../../../schemas/index.ts'

export interface FleetSize {
  /** Number of VirtualMCPServers, without the one with many backends. */
  readonly servers: number
  /** Number of their namespaces. */
  readonly namespaces: number
  /** Number of members of the one large group. */
  readonly backends: number
  /** Number of objects of other kinds, without the large group's. */
  readonly others: number
}

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly spec: object
}

/** Namespace of the virtual server with many backends. */
export const large = { namespace: 'large', group: 'everything', server: 'everything' } as const

export const namespaceOf = (index: number): string => `team-${index}`

export function namespacesOf({ namespaces }: FleetSize): readonly string[] {
  return [large.namespace, ...Array.from({ length: namespaces }, (_, index) => namespaceOf(index))]
}

export function pluralOf(kind: string): string {
  const info = kinds.find((one) => one.kind === kind)
  if (!info) throw new Error(`no kind ${kind}`)
  return info.plural
}

export function fleet(size: FleetSize): readonly Manifest[] {
  const spread = (count: number, index: number) => share(count, size.namespaces, index)
  return [
    ...largeNamespace(size.backends),
    ...Array.from({ length: size.namespaces }, (_, index) =>
      team(namespaceOf(index), spread(size.servers, index), spread(size.others, index)),
    ).flat(),
  ]
}

/** Returns the share of one place when `count` things are distributed over `places`. */
function share(count: number, places: number, index: number): number {
  return Math.floor((count * (index + 1)) / places) - Math.floor((count * index) / places)
}

export function largeNamespace(backends: number): readonly Manifest[] {
  const { namespace, group, server } = large
  const make = maker(namespace)
  const members = Array.from({ length: backends }, (_, index) => entry(make, `backend-${index}`, group))
  const door = { groupRef: { name: group }, incomingAuth: { type: 'anonymous' } }
  return [
    make('MCPGroup', group, { description: 'All of them' }),
    ...members,
    make('VirtualMCPServer', server, door),
  ]
}

type Make = (kind: string, name: string, spec: object) => Manifest

function maker(namespace: string): Make {
  return (kind, name, spec) => ({ apiVersion, kind, metadata: { name, namespace }, spec })
}

function entry(make: Make, name: string, group: string, more: object = {}): Manifest {
  return make('MCPServerEntry', name, {
    groupRef: { name: group },
    remoteUrl: `https://${name}.example.com/mcp`,
    transport: 'streamable-http',
    ...more,
  })
}

export function team(namespace: string, servers: number, others: number): readonly Manifest[] {
  const make = maker(namespace)
  const tenth = Math.max(1, Math.floor(others / 10))
  const groups = names('group', tenth)
  const settings = [
    ...names('tools', tenth).map((name) => make('MCPToolConfig', name, { toolsFilter: ['search', 'read'] })),
    ...names('auth', tenth).map((name) => make('MCPExternalAuthConfig', name, { type: 'unauthenticated' })),
    ...names('policies', tenth).map((name) =>
      make('MCPAuthzConfig', name, {
        type: 'cedarv1',
        config: { policies: ['permit(principal, action, resource);'] },
      }),
    ),
  ]
  const workloads = names('workload', tenth).map((name, index) => {
    const refs = {
      groupRef: { name: turn(groups, index) },
      toolConfigRef: { name: `tools-${index % tenth}` },
    }
    return index % 2 === 0
      ? make('MCPServer', name, { image: `example/${name}:1`, transport: 'streamable-http', ...refs })
      : make('MCPRemoteProxy', name, { remoteUrl: `https://${name}.example.com/mcp`, ...refs })
  })
  const rest = Math.max(0, others - settings.length - workloads.length - groups.length)
  const entries = names('entry', rest).map((name, index) =>
    entry(make, name, turn(groups, index), { externalAuthConfigRef: { name: `auth-${index % tenth}` } }),
  )
  const doors = names('door', servers).map((name, index) =>
    make('VirtualMCPServer', name, {
      groupRef: { name: turn(groups, index) },
      incomingAuth: { type: 'anonymous', authzConfigRef: { name: `policies-${index % tenth}` } },
    }),
  )
  const made = groups.map((name) => make('MCPGroup', name, { description: 'Tools of a team' }))
  return [...made, ...settings, ...workloads, ...entries, ...doors]
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
}

function turn(list: readonly string[], index: number): string {
  return list[index % list.length] ?? ''
}
