/**
 * Names and numbers of the Model Context Protocol that several modules use.
 *
 * "Session era" means every revision that begins with `initialize` (2024-11-05 to 2025-11-25). "Stateless era" means
 * 2026-07-28. In the stateless era, each request contains its own metadata.
 * Source: MCP 2025-11-25 and 2026-07-28 (basic, transports, versioning).
 */
export const statelessVersion = '2026-07-28'
export const latestSessionVersion = '2025-11-25'
/** The revision that is assumed for a client without a version header (MCP 2025-11-25, transports). */
export const assumedSessionVersion = '2025-03-26'

/** Session-era revisions, newest first. */
export const sessionVersions: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
export const allVersions: readonly string[] = [statelessVersion, ...sessionVersions]

/** Header names in lowercase, as in Node. */
export const headerName = {
  sessionId: 'mcp-session-id',
  protocolVersion: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  /** Prefix of headers that mirror tool arguments. */
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

/** Reserved keys in `_meta`. */
export const metaKey = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

/**
 * A member of a DiscoverResult's `_meta`. The value is `session` if Gatehouse translates the stateless era for a
 * session-era server. A client that supports both eras should then use the session era.
 */
export const nativeEra = 'dev.gatehouse/native-era'

/** JSON-RPC error codes that MCP uses. */
export const rpcCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  capabilityRequired: -32021,
  versionUnsupported: -32022,
  /** Exists only in the session era. The stateless era uses invalidParams. */
  resourceNotFound: -32002,
  /** Exists only in 2025-11-25. The user must open a URL before the request can be executed. */
  urlElicitationRequired: -32042,
} as const

/** MCP log levels, least severe first (RFC 5424 section 6.2.1). */
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

/** Method of the notification that a watched resource has changed. */
export const updatedMethod = 'notifications/resources/updated'

/**
 * Prefix of the `_meta` members that are reserved for the protocol. This prefix in a body indicates the stateless era.
 */
export const reservedMetaPrefix: Buffer = Buffer.from('io.modelcontextprotocol/')
