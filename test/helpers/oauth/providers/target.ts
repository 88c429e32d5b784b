/** An MCP server that accepts only the tokens of one fake provider. It responds to every request with its result. */
import { isFields, jsonFields } from '../../../../schemas/index.ts'
import { type Loopback, startLoopback } from '../../loopback.ts'
import type { FakeProvider } from './provider.ts'

export interface ProtectedTarget extends Loopback {
  /** Number of accepted requests to the endpoint. */
  readonly accepted: number
}

const documentPath = '/.well-known/oauth-protected-resource/mcp'

export async function startTarget(
  provider: FakeProvider,
  { issuer = provider.issuer, scopes = [] }: { issuer?: string; scopes?: readonly string[] } = {},
): Promise<ProtectedTarget> {
  let accepted = 0
  const peer = await startLoopback(({ method, path, headers, body }) => {
    const origin = `http://${headers.host ?? ''}`
    if (path === documentPath) {
      const document = { resource: `${origin}/mcp`, authorization_servers: [issuer] }
      return { body: scopes.length > 0 ? { ...document, scopes_supported: scopes } : document }
    }
    if (path !== '/mcp') return { status: 404 }
    // Streams are rejected before tokens are checked, so that only calls need a token.
    if (method !== 'POST') return { status: 405 }
    if (!provider.accepts(headers.authorization)) {
      const challenge = `Bearer resource_metadata="${origin}${documentPath}"`
      return { status: 401, headers: { 'www-authenticate': challenge } }
    }
    const message = jsonFields(body) ?? {}
    accepted += 1
    if (message['id'] === undefined) return { status: 202 }
    return { body: { jsonrpc: '2.0', id: message['id'], result: resultOf(message['method']) } }
  })
  return {
    ...peer,
    get accepted() {
      return accepted
    },
  }
}

function resultOf(method: unknown): Record<string, unknown> {
  if (method === 'initialize') {
    return {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'target', version: '1' },
    }
  }
  if (method === 'tools/list') return { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }
  return { content: [{ type: 'text', text: 'done' }] }
}

/** The text of a tool result, or the message of an error. */
export function textOf(message: unknown): string {
  if (!isFields(message)) return ''
  const { result, error } = message
  if (isFields(error)) return String(error['message'])
  const content = isFields(result) ? result['content'] : undefined
  const first: unknown = Array.isArray(content) ? content[0] : undefined
  return isFields(first) ? String(first['text']) : ''
}
