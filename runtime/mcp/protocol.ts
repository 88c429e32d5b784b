/**
 * Names and numbers of the Model Context Protocol that several modules use.
 *
 * "Session era" means every revision that begins with `initialize` (2024-11-05 to 2025-11-25); "stateless era" is
 * 2026-07-28, where each request contains its own metadata.
 * Source: MCP 2025-11-25 and 2026-07-28 (basic, transports, versioning).
 */
export const statelessVersion = '2026-07-28'
export const latestSessionVersion = '2025-11-25'
/** The revision assumed for a client that sends no version header (MCP 2025-11-25, transports). */
export const assumedSessionVersion = '2025-03-26'

/** Session-era revisions, newest first. */
export const sessionVersions: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
export const allVersions: readonly string[] = [statelessVersion, ...sessionVersions]

/** Header names, in lower case as in Node. */
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
 * Member of the `_meta` of a DiscoverResult. Its value is `session` when Gatehouse translates the stateless era for a
 * session-era server. A client that supports both eras should then use the session era.
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
  /** Session era only; the stateless era uses invalidParams. */
  resourceNotFound: -32002,
  /** 2025-11-25 only: the user must open a URL before the request can be executed. */
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

/** Method of the notification that a watched resource has changed. */
export const updatedMethod = 'notifications/resources/updated'

/**
 * Prefix of the `_meta` members that are reserved for the protocol. Its presence in a body indicates the stateless era.
 */
export const reservedMetaPrefix: Buffer = Buffer.from('io.modelcontextprotocol/')
