/**
 * Detects whether the target requires authentication by sending requests without credentials.
 *
 * Requests are sent to the MCP endpoint, then to the root; a target with a configured path receives them only at that
 * path. The sequence is a GET, a POST of `initialize`, then a POST of `tools/list`, because some servers accept an
 * unauthenticated handshake. The protocol era is derived from the response to `initialize`, and an opened session is
 * deleted immediately. Only a 401 with a Bearer or DPoP challenge, or a protected-resource document, means that
 * authentication is required. A target that does not respond is reported as `unknown`, not as `open`.
 * Source: docs/reference/specification/proxy-command.md#rules, rule 1; MCP 2025-11-25 authorization.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { TargetAddress } from '../../config/index.ts'
import { headerName, latestSessionVersion, metaKey, statelessVersion } from '../../mcp/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import {
  type Challenge,
  discoverResource,
  type Fetch,
  findChallenge,
  OAuthClientError,
  parseChallenges,
  tokenChallenge,
} from '../../oauth/index.ts'

export interface Detection {
  readonly kind: 'open' | 'protected' | 'unknown'
  /** The URL that was requested, or that would have been requested. */
  readonly url: string
  readonly challenge: Challenge | undefined
}

/** Possible endpoints of a target without a configured path. */
const usualPaths = ['/mcp', '/'] as const
const limitMs = 10_000

const clientInfo = { name: 'gatehouse', version: '1' }

const initialize = rpc('initialize', {
  protocolVersion: latestSessionVersion,
  capabilities: {},
  clientInfo,
})
const listInSession = rpc('tools/list', {})
const listStateless = rpc('tools/list', {
  _meta: {
    [metaKey.protocolVersion]: statelessVersion,
    [metaKey.clientInfo]: clientInfo,
    [metaKey.clientCapabilities]: {},
  },
})

function rpc(method: string, params: Record<string, unknown>): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
}

interface Asking {
  readonly target: TargetAddress
  readonly dispatcher: Dispatcher
  readonly signal: AbortSignal
}

interface TargetResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

export async function detect(
  target: TargetAddress,
  dispatcher: Dispatcher,
  fetch: Fetch,
): Promise<Detection> {
  const signal = AbortSignal.timeout(limitMs)
  const paths = target.path === undefined ? usualPaths : ([target.path] as const)
  let responded = false
  for (const path of paths) {
    for await (const { status, headers } of responses({ target, dispatcher, signal }, path)) {
      responded = true
      const challenge = challengeOf(status, headers)
      if (challenge) return { kind: 'protected', url: target.origin + path, challenge }
    }
  }
  const url = target.origin + paths[0]
  if (!responded) return { kind: 'unknown', url, challenge: undefined }
  return { kind: (await hasDocument(url, fetch, signal)) ? 'protected' : 'open', url, challenge: undefined }
}

/** Yields the target's responses at one path until the caller stops iterating. */
async function* responses(asking: Asking, path: string): AsyncGenerator<TargetResponse> {
  const got = await ask(asking, path, { method: 'GET' })
  if (got) yield got
  const opened = await ask(asking, path, { method: 'POST', body: initialize })
  if (!opened) return
  const id = opened.headers[headerName.sessionId]
  const session = typeof id === 'string' ? [headerName.sessionId, id] : []
  try {
    yield opened
    const listed = isSuccess(opened)
      ? await ask(asking, path, { method: 'POST', body: listInSession, headers: session })
      : await ask(asking, path, {
          method: 'POST',
          body: listStateless,
          headers: [headerName.protocolVersion, statelessVersion, headerName.method, 'tools/list'],
        })
    if (listed) yield listed
  } finally {
    if (session.length > 0) await ask(asking, path, { method: 'DELETE', headers: session })
  }
}

function isSuccess({ status }: TargetResponse): boolean {
  return status >= 200 && status < 300
}

/** Returns the Bearer or DPoP challenge of a rejection. `OAuth` is an older name for Bearer. */
function challengeOf(status: number, headers: IncomingHttpHeaders): Challenge | undefined {
  if (status !== 401 && status !== 403) return undefined
  const values = headers['www-authenticate']
  return tokenChallenge(values) ?? findChallenge(parseChallenges(values), 'oauth')
}

async function ask(
  { target, dispatcher, signal }: Asking,
  path: string,
  request: {
    readonly method: 'GET' | 'POST' | 'DELETE'
    readonly body?: Buffer
    readonly headers?: readonly string[]
  },
): Promise<TargetResponse | undefined> {
  const { method, body, headers = [] } = request
  const type = body ? ['Content-Type', 'application/json'] : []
  const accept = ['Accept', 'application/json, text/event-stream']
  try {
    const response = await dispatcher.request({
      origin: target.origin,
      path: target.query === '' ? path : `${path}?${target.query}`,
      method,
      headers: ['Host', target.authority, ...accept, ...type, ...headers],
      body: body ?? null,
      headersTimeout: 5_000,
      signal,
    })
    // Destroy the body, because a stream would not end on its own.
    response.body.on('error', () => {})
    response.body.destroy()
    return { status: response.statusCode, headers: response.headers }
  } catch {
    return undefined
  }
}

async function hasDocument(url: string, fetch: Fetch, signal: AbortSignal): Promise<boolean> {
  try {
    const document = await discoverResource(url, { fetch, signal })
    return document !== undefined && document.authorizationServers.length > 0
  } catch (error) {
    // Treat a document that does not arrive in time as missing: the target is open.
    if (error instanceof OAuthClientError || signal.aborted) return false
    throw error
  }
}
