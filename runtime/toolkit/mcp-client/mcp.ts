/**
 * The requests that a small MCP client sends, in both protocol eras. Reads a JSON response, or an event stream until it
 * contains the response.
 */
import { isFields, jsonFields } from '../../../schemas/index.ts'
import {
  eventStreamType,
  headerName,
  jsonType,
  latestSessionVersion,
  metaKey,
  sseReader,
  statelessVersion,
  writeHeaderValue,
} from '../../mcp/index.ts'
import { type JsonRecord, wordsOf } from '../../oauth/index.ts'
import { isFailure, maxBodyBytes, type ProbeReply } from './exchange.ts'
import type { NetworkFailure } from '../../net/index.ts'
import type { Peers } from './peers.ts'

export interface McpReply {
  readonly reply: ProbeReply
  /** The JSON-RPC response's result, if any. */
  readonly result?: JsonRecord
  readonly error?: { readonly code: unknown; readonly message: unknown }
}

export interface McpRequest {
  readonly method: string
  readonly params?: JsonRecord
  readonly era: 'session' | 'stateless'
  /** True when no response is expected. */
  readonly notification?: boolean
  readonly session?: string | undefined
  /** The negotiated revision, after `initialize`. */
  readonly version?: string | undefined
  readonly token?: string | undefined
}

const clientInfo = { name: 'gatehouse-doctor', version: '1' }
const acceptBoth = `${jsonType}, ${eventStreamType}`

export const initializeParams: JsonRecord = {
  protocolVersion: latestSessionVersion,
  capabilities: {},
  clientInfo,
}

export async function askMcp(
  peers: Peers,
  url: URL,
  request: McpRequest,
): Promise<McpReply | NetworkFailure> {
  const found: { message?: JsonRecord } = {}
  const reader = sseReader(maxBodyBytes, (event) => {
    const data = event.data()
    // Only large events are decoded asynchronously, and no response to this probe is that large.
    const message = data instanceof Promise ? undefined : responseIn(data.toString())
    if (message?.['id'] === 1 || message?.['id'] === '1') found.message ??= message
  })
  const reply = await peers.ask(url, {
    method: 'POST',
    headers: headersOf(request),
    body: JSON.stringify(bodyOf(request)),
    // A success status completes a notification, regardless of the body.
    ...(request.notification && { bodyMs: 0 }),
    until(chunk) {
      try {
        reader.push(chunk)
      } catch {
        return true
      }
      return found.message !== undefined
    },
  })
  if (isFailure(reply)) return reply
  const message = found.message ?? responseIn(reply.body)
  const error = message?.['error']
  const result = message?.['result']
  return {
    reply,
    ...(isFields(result) && { result }),
    ...(isFields(error) && { error: { code: error['code'], message: error['message'] } }),
  }
}

/** Returns the response contained in the text. Accepts a byte order mark and a list that contains only the response. */
function responseIn(text: string): JsonRecord | undefined {
  const json = text.replace(/^\ufeff/, '').trim()
  const message = jsonFields(json.startsWith('[') && json.endsWith(']') ? json.slice(1, -1) : json)
  return message !== undefined && ('result' in message || 'error' in message) ? message : undefined
}

/** Returns the server's own explanation from a response body, or undefined when there is none. */
export function explanation({ body }: ProbeReply): string | undefined {
  const text = body.replace(/^\ufeff/, '')
  return wordsOf(text, jsonFields(text))
}

/** Returns an observation with the server's explanation, if there is one. */
export function withWords(observed: string, words: string | undefined): string {
  return words === undefined ? observed : `${observed}: ${words}`
}

export function credentials(
  request: Pick<McpRequest, 'session' | 'version' | 'token'>,
): Record<string, string> {
  return {
    ...(request.session !== undefined && { [headerName.sessionId]: request.session }),
    ...(request.version !== undefined && { [headerName.protocolVersion]: request.version }),
    ...(request.token !== undefined && { authorization: `Bearer ${request.token}` }),
  }
}

function headersOf(request: McpRequest): Record<string, string> {
  const item = request.params?.[request.method === 'resources/read' ? 'uri' : 'name']
  const stateless = {
    [headerName.protocolVersion]: statelessVersion,
    [headerName.method]: request.method,
    ...(typeof item === 'string' && { [headerName.name]: writeHeaderValue(item) }),
  }
  return {
    accept: acceptBoth,
    'content-type': jsonType,
    ...credentials(request),
    ...(request.era === 'stateless' && stateless),
  }
}

function bodyOf({ method, params = {}, era, notification = false }: McpRequest): JsonRecord {
  const meta = {
    [metaKey.protocolVersion]: statelessVersion,
    [metaKey.clientInfo]: clientInfo,
    [metaKey.clientCapabilities]: {},
  }
  return {
    jsonrpc: '2.0',
    ...(!notification && { id: 1 }),
    method,
    params: era === 'stateless' ? { ...params, _meta: meta } : params,
  }
}
