/**
 * Finds a group's members, which are the backends of a virtual server.
 *
 * A backend is named after its resource, so resources of different kinds can collide. The first member in the order of
 * `memberKinds` is used. Members that are being deleted are skipped. Objects are read through type guards, because
 * members may have been admitted under older rules.
 */
import { type Fields, fieldsOf, filledTextOf, type KubeObject } from '../base/kube.ts'

export const memberKinds = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry'] as const
export type MemberKind = (typeof memberKinds)[number]

export interface GroupMember {
  readonly kind: MemberKind
  readonly name: string
  /** URL of the member; undefined while the member has no address, and for an invalid entry. */
  readonly url: string | undefined
  readonly transport: 'sse' | 'streamable-http'
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
  const url =
    kind === 'MCPServerEntry' ? entryUrl(spec, phase) : filledTextOf(fieldsOf(object['status'])['url'])
  return {
    kind,
    name: object.metadata.name,
    url: url !== undefined && /^https?:\/\/\S+$/.test(url) && url.length <= 2048 ? url : undefined,
    transport: kind === 'MCPServerEntry' ? entryTransport(spec) : transportOf(url),
    phase,
    authRef: filledTextOf(fieldsOf(spec['externalAuthConfigRef'])['name']),
    object,
  }
}

function entryUrl(spec: Fields, phase: string | undefined): string | undefined {
  return phase === 'Valid' ? filledTextOf(spec['remoteUrl']) : undefined
}

function entryTransport(spec: Fields): GroupMember['transport'] {
  return spec['transport'] === 'sse' ? 'sse' : 'streamable-http'
}

/** Derives the transport from the path of a status URL: SSE for `/sse`, otherwise streamable HTTP. */
function transportOf(url: string | undefined): GroupMember['transport'] {
  return url?.endsWith('/sse') ? 'sse' : 'streamable-http'
}

function specOf(object: KubeObject): Fields {
  return fieldsOf(object['spec'])
}
