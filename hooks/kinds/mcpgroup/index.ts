/**
 * MCPGroup: lists its members, which join through their own groupRef. It has no children.
 *
 * Members of different kinds may have the same name, so two servers can have the same backend name. The group reports
 * the conflict, and virtual servers use the first member in the order of `memberKinds`.
 */
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { groupMembers, memberKinds } from '../../references/members.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { ownRelatedKinds, relatedRules } from '../../sync/rules.ts'

export const mcpGroup: KindHooks<'MCPGroup'> = {
  kind: 'MCPGroup',
  childKinds: [],
  relatedKinds: ownRelatedKinds(memberKinds),
  validate: () => [],
  customize: ({ parent }) => relatedRules(parent, { kinds: memberKinds }),
  sync,
}

function sync(context: SyncContext<'MCPGroup'>): SyncResponse {
  const { members, duplicates } = groupMembers(context, context.name)
  const names = (kind: string) =>
    members.filter((member) => member.kind === kind).map((member) => member.name)
  const [servers, remoteProxies, entries, openApiServers] = [
    names('MCPServer'),
    names('MCPRemoteProxy'),
    names('MCPServerEntry'),
    names('MCPOpenAPIServer'),
  ]
  context.conditions.set(
    'MCPServersChecked',
    'True',
    'ListMCPServersCheckSucceeded',
    'All members of the group were listed',
  )
  if (duplicates.length > 0) {
    context.conditions.set(
      'MemberNamesUnique',
      'False',
      'DuplicateMemberName',
      `More than one member is called ${duplicates.join(', ')}; only the first of ${memberKinds.join(', ')} is used`,
    )
  } else {
    context.conditions.set('MemberNamesUnique', 'True', 'MemberNamesUnique', 'All member names are unique')
  }
  return {
    status: {
      phase: 'Ready',
      servers,
      serverCount: servers.length,
      remoteProxies,
      remoteProxyCount: remoteProxies.length,
      entries,
      entryCount: entries.length,
      openApiServers,
      openApiServerCount: openApiServers.length,
      ...observedFields(context),
    },
    children: [],
  }
}
