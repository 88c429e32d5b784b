/**
 * Finds out whether the target wants authentication, by asking it once without any.
 *
 * The MCP endpoint is asked first, then the root: a GET, and where that is not refused a POST of `initialize`, whose
 * session is given back at once. Only a 401 with a Bearer challenge (or a protected-resource document) means yes; a
 * target that does not answer is unknown, which is not the same as open.
 * Source: spec document 1, rule 1; MCP 2025-11-25 authorization.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Target } from '../../config/index.ts'
import { HEADER } from '../../mcp/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import {
  type Challenge,
  discoverResource,
  type Fetch,
  findChallenge,
  OAuthFault,
  parseChallenges,
} from '../../oauth/index.ts'

export interface Detection {
  readonly kind: 'open' | 'protected' | 'unknown'
  /** The URL that was asked, or would be. */
  readonly url: string
  readonly challenge: Challenge | undefined
}

const paths = ['/mcp', '/']
const limitMs = 10_000

const initialize = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'gatehouse', version: '1' },
    },
  }),
)

export async function detect(target: Target, dispatcher: Dispatcher, fetch: Fetch): Promise<Detection> {
  const signal = AbortSignal.timeout(limitMs)
  let answered = false
  for (const path of paths) {
    for (const method of ['GET', 'POST'] as const) {
      const answer = await ask(target, dispatcher, path, method, signal)
      if (!answer) continue
      answered = true
      const challenge = bearerChallenge(answer.status, answer.headers)
      if (challenge) return { kind: 'protected', url: target.origin + path, challenge }
    }
  }
  const url = `${target.origin}/mcp`
  if (!answered) return { kind: 'unknown', url, challenge: undefined }
  return { kind: (await hasDocument(url, fetch, signal)) ? 'protected' : 'open', url, challenge: undefined }
}

/** The Bearer challenge of a refusal; `OAuth` is an old name of the same. */
export function bearerChallenge(status: number, headers: IncomingHttpHeaders): Challenge | undefined {
  if (status !== 401 && status !== 403) return undefined
  const challenges = parseChallenges(headers['www-authenticate'])
  return findChallenge(challenges, 'bearer', 'resource_metadata') ?? findChallenge(challenges, 'oauth')
}

async function ask(
  target: Target,
  dispatcher: Dispatcher,
  path: string,
  method: 'GET' | 'POST' | 'DELETE',
  signal: AbortSignal,
  sessionId?: string,
): Promise<{ status: number; headers: IncomingHttpHeaders } | undefined> {
  const headers = ['Host', target.authority, 'Accept', 'application/json, text/event-stream']
  if (method === 'POST') headers.push('Content-Type', 'application/json')
  if (sessionId !== undefined) headers.push('Mcp-Session-Id', sessionId)
  try {
    const answer = await dispatcher.request({
      origin: target.origin,
      path: target.query === '' ? path : `${path}?${target.query}`,
      method,
      headers,
      body: method === 'POST' ? initialize : null,
      headersTimeout: 5_000,
      signal,
    })
    // A stream would not end by itself.
    answer.body.on('error', () => {})
    answer.body.destroy()
    const opened = answer.headers[HEADER.sessionId]
    if (method === 'POST' && typeof opened === 'string')
      await ask(target, dispatcher, path, 'DELETE', signal, opened)
    return { status: answer.statusCode, headers: answer.headers }
  } catch {
    return undefined
  }
}

async function hasDocument(url: string, fetch: Fetch, signal: AbortSignal): Promise<boolean> {
  try {
    const document = await discoverResource(url, { fetch, signal })
    return document !== undefined && document.authorizationServers.length > 0
  } catch (error) {
    if (error instanceof OAuthFault) return false
    throw error
  }
}
