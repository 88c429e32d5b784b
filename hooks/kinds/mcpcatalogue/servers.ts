/**
 * Lists the published virtual servers of the namespace that a catalogue selects.
 *
 * A server is listed after its first sync. An anonymous catalogue contains public servers only: information about other
 * servers never reaches its pods. A server with an invalid address is skipped, and the other servers stay listed.
 */
import {
  byText,
  type CatalogueServer,
  type MCPCatalogueSpec,
  serviceViolation,
  type VirtualMCPServerSpec,
} from '../../../schemas/index.ts'
import { fieldsOf, filledTextOf, type KubeObject } from '../../base/kube.ts'
import { ownIssuerReference } from '../../runtime-config/issuers.ts'
import type { SyncContext } from '../../sync/context.ts'
import { externalUrl } from '../common/exposure.ts'

type Context = SyncContext<'MCPCatalogue'>

/** Maximum number of servers in a catalogue's file. */
const maxServers = 500

/** Returns the servers, sorted by name, and sets the condition ServersListed. */
export function publishedServers(context: Context): readonly CatalogueServer[] {
  const { spec, conditions } = context
  const published = context
    .members('VirtualMCPServer')
    .filter((server) => isSelected(server, spec))
    .toSorted((one, other) => byText(order(one), order(other)))
    .flatMap((server) => entryOf(context, server) ?? [])
    .filter((server) => spec.incomingAuth.type !== 'anonymous' || server.public)
  const found = published.filter(({ url }) => serviceViolation(url) === undefined)
  const unusable = published.filter((server) => !found.includes(server))
  // The oldest server owns a name.
  const byName = new Map(found.toReversed().map((server) => [server.name, server]))
  const servers = [...byName.values()].sort((one, other) => byText(one.name, other.name))
  const duplicates = [...Map.groupBy(found, ({ name }) => name)].filter(([, same]) => same.length > 1)
  const listed = servers.slice(0, maxServers)
  conditions.check(
    'ServersListed',
    unusable.length > 0
      ? {
          reason: 'ConfigInvalid',
          message: `These servers are not listed, because their addresses are invalid: ${unusable.map(({ name }) => name).join(', ')}`,
        }
      : duplicates.length > 0
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
function entryOf(context: Context, server: KubeObject): CatalogueServer | undefined {
  const publish = fieldsOf(fieldsOf(server['spec'])['publish'])
  const name = filledTextOf(publish['name'])
  const description = filledTextOf(publish['description'])
  const title = filledTextOf(publish['title'])
  const url = addressOf(context, server)
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

/**
 * Returns the address that the server card contains. Reads only `url` from the status, which does not depend on the
 * spec. Otherwise, the version of an entry could change before its address.
 */
function addressOf({ settings }: Context, server: KubeObject): string | undefined {
  const url = filledTextOf(fieldsOf(server['status'])['url'])
  if (url === undefined || !URL.canParse(url)) return undefined
  // The API server has checked the types of the fields.
  const spec = fieldsOf(server['spec']) as Partial<VirtualMCPServerSpec>
  return (
    url &&
    (externalUrl({ settings, spec }, url) ?? ownIssuerReference(spec.incomingAuth ?? {})?.resourceUrl ?? url)
  )
}
