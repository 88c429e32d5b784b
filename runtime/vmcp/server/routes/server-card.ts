/**
 * The public description of a virtual server: its server card, and an AI catalog that points to the card.
 *
 * Served without authentication, and only while `publish.public` is true; otherwise, both paths are unknown. The
 * documents contain the published name, texts and address, and nothing about backends or tools.
 * Source: SEP-2127 (MCP server cards), "Discovery".
 */
import type { VmcpConfig } from '../../../config/index.ts'
import { allVersions } from '../../../mcp/index.ts'
import { type LoadControl, sendDocument, type Stage } from '../../../net/index.ts'
import { mcpPath, type VmcpExchange } from '../../model/exchange.ts'

const cardPath = `${mcpPath}/server-card`
const catalogPath = '/.well-known/ai-catalog.json'
const cardType = 'application/mcp-server-card+json'
const maxAgeSeconds = 3600

export interface CardParts {
  /** Version of this program, as in `serverInfo`. */
  readonly version: string
  /** Address of the MCP endpoint, if the publication does not contain one. */
  readonly url: string
  /** Rejects requests during overload, because unauthenticated clients can send any number of requests. */
  readonly load: Pick<LoadControl, 'admit'>
}

/** Returns the stage for the server card or the AI catalog. Returns undefined for all other paths. */
export function cardRoute(
  path: string,
  publication: VmcpConfig['publish'],
  parts: CardParts,
): Stage<VmcpExchange> | undefined {
  if (path !== cardPath && path !== catalogPath) return undefined
  if (publication?.public !== true) return undefined
  const { name, title, description } = publication
  const url = (publication.url ?? parts.url).replace(/\/+$/, '')
  const document =
    path === cardPath
      ? {
          $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
          name,
          version: parts.version,
          title,
          description,
          remotes: [{ type: 'streamable-http', url, supportedProtocolVersions: allVersions }],
        }
      : {
          specVersion: '1.0',
          entries: [{ identifier: airIdentifier(name), type: cardType, url: `${url}/server-card` }],
        }
  return async (exchange) => {
    await parts.load.admit(exchange)
    sendDocument(exchange, {
      contentType: path === cardPath ? cardType : 'application/ai-catalog+json',
      body: JSON.stringify(document),
      maxAgeSeconds,
      isPublic: true,
    })
  }
}

/** Returns the catalog identifier: `com.example/weather` becomes `urn:air:example.com:mcp:weather`. */
function airIdentifier(name: string): string {
  const [namespace = '', server = ''] = name.split('/')
  return `urn:air:${namespace.split('.').toReversed().join('.')}:mcp:${server}`
}
