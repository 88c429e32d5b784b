/**
 * Lists the published virtual servers of the namespace that a catalogue selects.
 *
 * The address of a server comes from its status, so a server is listed after its first sync. An anonymous catalogue
 * contains public servers only: information about other servers never reaches its pods.
 */
import { byText, type CatalogueServer, type MCPCatalogueSpec } from '../../../schemas/index.ts'
import { fieldsOf, filledTextOf, type KubeObject } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'

/** Maximum number of servers in a catalogue's file. */
const maxServers = 500

/** Returns the servers, sorted by name, and sets the condition ServersListed. */
export function publishedServers(context: SyncContext<'MCPCatalogue'>): readonly CatalogueServer[] {
  const { spec, conditions } = context
  const found = context
    .members('VirtualMCPServer')
    .filter((server) => isSelected(server, spec))
    .toSorted((one, other) => byText(order(one), order(other)))
    .flatMap((server) => entryOf(server) ?? [])
    .filter((server) => spec.incomingAuth.type !== 'anonymous' || server.public)
  // The oldest server owns a name.
  const byName = new Map(found.toReversed().map((server) => [server.name, server]))
  const servers = [...byName.values()].sort((one, other) => byText(one.name, other.name))
  const duplicates = [...Map.groupBy(found, ({ name }) => name)].filter(([, same]) => same.length > 1)
  const listed = servers.slice(0, maxServers)
  conditions.check(
    'ServersListed',
    duplicates.length > 0
      ? {
          reason: 'PublishedNameClaimed',
          message: `Several virtual servers have the same spec.publish.name, and only the oldest is listed: ${duplicates.map(([name]) => name).join(', ')}`,
        }
      : servers.length > maxServers
        ? {
            reason: 'TooManyServers',
            message: `${servers.length} servers are published; the catalogue lists the first ${maxServers} by name`,
          }
        : undefined,
    'ServersListed',
    `Listed servers: ${listed.length}`,
  )
  return listed
}

function isSelected({ metadata }: KubeObject, { selector }: MCPCatalogueSpec): boolean {
  return Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => metadata.labels?.[key] === value)
}

function order({ metadata }: KubeObject): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.name}`
}

/** Returns undefined for a server that is not published or has no address yet. */
function entryOf(server: KubeObject): CatalogueServer | undefined {
  const spec = fieldsOf(server['spec'])
  const status = fieldsOf(server['status'])
  const publish = fieldsOf(spec['publish'])
  const name = filledTextOf(publish['name'])
  const description = filledTextOf(publish['description'])
  const title = filledTextOf(publish['title'])
  const oidc = fieldsOf(fieldsOf(spec['incomingAuth'])['oidcConfigRef'])
  const url =
    filledTextOf(status['externalUrl']) ?? filledTextOf(oidc['resourceUrl']) ?? filledTextOf(status['url'])
  if (name === undefined || description === undefined || url === undefined) return undefined
  const { generation = 1, creationTimestamp } = server.metadata
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    public: publish['public'] === true,
    url,
    version: `1.0.${generation}`,
    ...(creationTimestamp !== undefined && { publishedAt: creationTimestamp }),
  }
}
