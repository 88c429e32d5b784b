/**
 * Describes a client's request on its span. The table of attributes lists current names next to those from older
 * conventions, which are added while useLegacyAttributes is on. docs/guides/observability.md repeats the table and a
 * test compares the two.
 *
 * Spans contain no query, header or session id: an attribute indicates that a query is present, and a session id
 * appears as a short hash.
 * Source: docs/reference/specification/virtual-server.md#telemetry, config.telemetry; OpenTelemetry semantic
 * conventions (HTTP, MCP, generative AI, RPC).
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { RequestScope } from '../exchange/scope.ts'
import { describeArguments } from './arguments.ts'
import type { SpanAttributes } from './tracer.ts'
import type { MaskText } from '../record-mask.ts'

/** Maps each current name to the legacy names for the same value. */
export const attributeTable: Readonly<Record<string, readonly string[]>> = {
  'http.request.method': ['http.method'],
  'url.full': ['http.url'],
  'url.scheme': ['http.scheme'],
  'server.address': ['http.host'],
  'url.path': ['http.target'],
  'url.query': ['http.query'],
  'user_agent.original': ['http.user_agent'],
  'http.request.body.size': ['http.request_content_length'],
  'http.response.body.size': ['http.response_content_length'],
  'http.response.status_code': ['http.status_code'],
  'mcp.method.name': ['mcp.method'],
  'jsonrpc.request.id': ['mcp.request.id'],
  'jsonrpc.protocol.version': [],
  'rpc.system.name': ['rpc.system'],
  'mcp.resource.uri': ['mcp.resource.id'],
  'gen_ai.prompt.name': ['mcp.prompt.name'],
  'gen_ai.tool.name': ['mcp.tool.name'],
  'gen_ai.tool.call.arguments': ['mcp.tool.arguments'],
  'gen_ai.operation.name': [],
  'network.transport': [],
  'network.protocol.name': [],
  'network.protocol.version': [],
  'mcp.session.id': [],
  'mcp.protocol.version': [],
  'mcp.client.name': [],
  'mcp.server.name': [],
  'client.address': [],
  'client.port': [],
  'target.workload_name': [],
  'error.type': [],
}

export interface SpanFacts {
  readonly scope: RequestScope
  readonly req: IncomingMessage
  readonly path: string
  readonly query: string
  readonly status: number
  readonly durationMs: number
  readonly requestBytes: number
  readonly responseBytes: number | undefined
  readonly server: string
  readonly transport: string
  readonly clientAddress: string
  readonly toolArguments: boolean
  readonly mask: MaskText | undefined
}

export function requestAttributes(facts: SpanFacts, legacy: boolean): SpanAttributes {
  const current = currentAttributes(facts)
  if (!legacy) return current
  const all: Record<string, string | number | boolean | undefined> = { ...current }
  for (const [name, older] of Object.entries(attributeTable)) {
    for (const alias of older) all[alias] = current[name]
  }
  all['http.duration_ms'] = facts.durationMs
  all['mcp.transport'] = facts.transport
  if (facts.scope.rpc) all['rpc.service'] = 'mcp'
  return all
}

function currentAttributes({ scope, req, ...facts }: SpanFacts): Record<string, string | number | undefined> {
  const { rpc } = scope
  const { host } = req.headers
  const session = req.headers['mcp-session-id']
  const version = req.headers['mcp-protocol-version']
  const tool = rpc?.targetType === 'tool'
  return {
    'http.request.method': req.method,
    'url.full': `http://${host ?? ''}${facts.path}`,
    'url.scheme': 'http',
    'server.address': host?.replace(/:\d{1,5}$/, ''),
    'url.path': facts.path,
    'url.query': facts.query === '' ? undefined : '[redacted]',
    'user_agent.original': req.headers['user-agent'],
    'http.request.body.size': facts.requestBytes > 0 ? facts.requestBytes : undefined,
    'http.response.body.size': facts.responseBytes,
    'http.response.status_code': facts.status,
    'mcp.method.name': rpc?.method,
    'jsonrpc.request.id': rpc?.id,
    'jsonrpc.protocol.version': rpc ? '2.0' : undefined,
    'rpc.system.name': rpc ? 'jsonrpc' : undefined,
    'mcp.resource.uri': rpc?.targetType === 'resource' ? rpc.target : undefined,
    'gen_ai.prompt.name': rpc?.targetType === 'prompt' ? rpc.target : undefined,
    'gen_ai.tool.name': tool ? rpc.target : undefined,
    'gen_ai.tool.call.arguments':
      facts.toolArguments && rpc?.toolArguments
        ? describeArguments(rpc.toolArguments, facts.mask)
        : undefined,
    'gen_ai.operation.name': tool ? 'execute_tool' : undefined,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'network.protocol.version': req.httpVersion,
    'mcp.session.id': typeof session === 'string' ? fingerprint(session) : undefined,
    'mcp.protocol.version': rpc?.protocolVersion ?? (typeof version === 'string' ? version : undefined),
    'mcp.client.name': scope.client?.name,
    'mcp.server.name': facts.server,
    'client.address': facts.clientAddress,
    'client.port': req.socket.remotePort,
    'target.workload_name': scope.backend,
  }
}

/** Returns twelve hex digits that identify a session to readers; they are never used for lookups. */
function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}
