/**
 * Finds a group's members, which are the backends of a virtual server.
 *
 * A backend is named after its resource, so resources of different kinds can collide. The first member in the order of
 * `memberKinds` is used. Members that are being deleted are skipped. Objects are read through type guards, because
 * members may have been admitted under older rules.
 */
import { type Fields, fieldsOf, filledTextOf, type KubeObject } from '../base/kube.ts'

export const memberKinds = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry', 'MCPOpenAPIServer'] as const
export type MemberKind = (typeof memberKinds)[number]

/** The kinds of members that virtual servers call directly, without a workload of their own. */
export type RemoteKind = 'MCPServerEntry' | 'MCPOpenAPIServer'

export function isRemote(kind: MemberKind): kind is RemoteKind {
  return kind === 'MCPServerEntry' || kind === 'MCPOpenAPIServer'
}

export interface GroupMember {
  readonly kind: MemberKind
  readonly name: string
  /** URL of the member; undefined while the member has no address, and for an unusable remote service. */
  readonly url: string | undefined
  readonly transport: 'sse' | 'streamable-http' | 'openapi'
  readonly phase: string | undefined
  /** Name of the member's own MCPExternalAuthConfig. */
  readonly authRef: string | undefined
  readonly object: KubeObject
}

interface MemberSource {
  readonly members: (kind: string) => readonly KubeObject[]
}

/** Returns the members and the names that several members share. */
export function groupMembers(
  source: MemberSource,
  group: string,
): { readonly members: readonly GroupMember[]; readonly duplicates: readonly string[] } {
  const members = memberKinds.flatMap((kind) =>
    source
      .members(kind)
      .filter((object) => filledTextOf(fieldsOf(specOf(object)['groupRef'])['name']) === group)
      .map((object) => memberOf(kind, object)),
  )
  const seen = new Set<string>()
  const duplicates = new Set<string>()
  for (const { name } of members) (seen.has(name) ? duplicates : seen).add(name)
  return { members, duplicates: [...duplicates].sort() }
}

function memberOf(kind: MemberKind, object: KubeObject): GroupMember {
  const spec = specOf(object)
  const phase = filledTextOf(fieldsOf(object['status'])['phase'])
  const url = urlOf(kind, object, phase)
  return {
    kind,
    name: object.metadata.name,
    url: url !== undefined && /^https?:\/\/\S+$/.test(url) && url.length <= 2048 ? url : undefined,
    transport: transportOf(kind, spec, url),
    phase,
    authRef: filledTextOf(fieldsOf(spec['externalAuthConfigRef'])['name']),
    object,
  }
}

function urlOf(kind: MemberKind, object: KubeObject, phase: string | undefined): string | undefined {
  if (kind === 'MCPServerEntry')
    return phase === 'Valid' ? filledTextOf(specOf(object)['remoteUrl']) : undefined
  if (kind !== 'MCPOpenAPIServer') return filledTextOf(fieldsOf(object['status'])['url'])
  // A service with an invalid document is Degraded: running servers keep the tools of the last valid document.
  return phase === 'Ready' || phase === 'Degraded' ? filledTextOf(specOf(object)['baseUrl']) : undefined
}

/** For a workload, derives the transport from the path of its URL: SSE for `/sse`, otherwise streamable HTTP. */
function transportOf(kind: MemberKind, spec: Fields, url: string | undefined): GroupMember['transport'] {
  if (kind === 'MCPOpenAPIServer') return 'openapi'
  const isSse = kind === 'MCPServerEntry' ? spec['transport'] === 'sse' : url?.endsWith('/sse')
  return isSse ? 'sse' : 'streamable-http'
}

function specOf(object: KubeObject): Fields {
  return fieldsOf(object['spec'])
}
