/**
 * Names and numbers of the Model Context Protocol that more than one module needs.
 *
 * "Session era" is every revision that opens with `initialize` (2024-11-05 to 2025-11-25); "stateless era" is
 * 2026-07-28, where each request carries its own metadata.
 * Source: MCP 2025-11-25 and 2026-07-28 (basic, transports, versioning).
 */
export const statelessVersion = '2026-07-28'
export const latestSessionVersion = '2025-11-25'
/** What a client that sends no version header is assumed to speak (MCP 2025-11-25, transports). */
export const assumedSessionVersion = '2025-03-26'

/** Session-era revisions, newest first. */
export const sessionVersions: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
export const allVersions: readonly string[] = [statelessVersion, ...sessionVersions]

/** Header names, in the lower case in which Node delivers them. */
export const headerName = {
  sessionId: 'mcp-session-id',
  protocolVersion: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  /** Prefix of the headers that mirror tool arguments. */
  param: 'mcp-param-',
  lastEventId: 'last-event-id',
} as const

declare module 'node:http' {
  /** Node joins the values of a repeated header. */
  interface IncomingHttpHeaders {
    'mcp-session-id'?: string | undefined
    'mcp-protocol-version'?: string | undefined
    'last-event-id'?: string | undefined
  }
}

/** Reserved `_meta` keys. */
export const metaKey = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

/**
 * Member of the `_meta` of a DiscoverResult: `session` when the stateless era is translated for a server that speaks the
 * session era. A client that speaks both does better with the server's own.
 */
export const nativeEra = 'dev.gatehouse/native-era'

/** JSON-RPC error codes with a meaning in MCP. */
export const rpcCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  capabilityRequired: -32021,
  versionUnsupported: -32022,
  /** Session era only; the stateless era says invalidParams. */
  resourceNotFound: -32002,
  /** 2025-11-25 only: the user has to visit an address before the request can be carried out. */
  urlElicitationRequired: -32042,
} as const

/** Log levels of MCP, least severe first (RFC 5424 section 6.2.1). */
export const logLevels: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]

export const jsonType = 'application/json'
export const eventStreamType = 'text/event-stream'

/** A notification of a server: a resource that the client watches has changed. */
export const updatedMethod = 'notifications/resources/updated'

/** Members of `_meta` that the protocol reserves; in a body it tells the stateless era. */
export const reservedMetaPrefix: Buffer = Buffer.from('io.modelcontextprotocol/')
