/** A virtual server with a group of `size` backends, as in the requests of its syncs. */
import { auth, entry, group, secrets, server, virtual } from '../../hooks/resources.ts'
import { World } from '../../hooks/world.ts'

/** A quarter of the backends has its own credentials. */
export function requestOf(size: number): string {
  const members = Array.from({ length: size }, (_, i) =>
    i % 2 === 0
      ? server(`server-${i}`)
      : entry(`entry-${i}`, i % 4 === 1 ? { externalAuthConfigRef: { name: 'exchange' } } : {}),
  )
  const world = new World().apply(group, ...secrets, auth.exchange, ...members, virtual())
  world.sync('MCPGroup', 'tools')
  world.sync('MCPExternalAuthConfig', 'exchange')
  for (const { kind, metadata } of members) world.sync(kind, metadata.name)
  world.sync('VirtualMCPServer', 'door')
  return JSON.stringify(world.request('VirtualMCPServer', 'door'))
}
