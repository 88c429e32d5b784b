/**
 * Checks whether an MCP server responds at an address. Sends `initialize`, and `server/discover` for a stateless-era
 * server. Reads an event stream only until the response.
 */
import { isFields } from '../../../schemas/index.ts'
import { headerName, metaKey } from '../../mcp/index.ts'
import type { JsonRecord } from '../../oauth/index.ts'
import { header } from './exchange.ts'
import { askMcp, credentials, initializeParams, type McpReply } from './mcp.ts'
import { makePeers, type Peers } from './peers.ts'

export type Greeting =
  | { readonly kind: 'server'; readonly name: string | undefined }
  | { readonly kind: 'login' }
  /** The server sent an HTTP response that is not an MCP response. */
  | { readonly kind: 'other'; readonly status: number }
  | { readonly kind: 'silent' }

interface GreetOptions {
  readonly timeoutMs: number
  /** Token that the server requires. */
  readonly token?: string | undefined
}

/** Never rejects. Sends at most three requests, each of which takes at most `timeoutMs`. */
export async function greet(url: string, { timeoutMs, token }: GreetOptions): Promise<Greeting> {
  const target = new URL(url)
  const peers = await makePeers({ target, timeoutMs })
  try {
    const opened = await askMcp(peers, target, {
      method: 'initialize',
      params: initializeParams,
      era: 'session',
      token,
    })
    if (isReply(opened)) await endSession(peers, target, opened, token)
    if (!isReply(opened) || opened.result || opened.reply.status === 401) return greetingOf(opened)
    const discovered = await askMcp(peers, target, {
      method: 'server/discover',
      era: 'stateless',
      token,
    })
    const isStateless = isReply(discovered) && discovered.result !== undefined
    return greetingOf(isStateless ? discovered : opened)
  } finally {
    await peers.close()
  }
}

type AskResult = Awaited<ReturnType<typeof askMcp>>

function isReply(result: AskResult): result is McpReply {
  return !('failure' in result)
}

function greetingOf(answer: AskResult): Greeting {
  if (!isReply(answer)) return { kind: 'silent' }
  const { reply, result, error } = answer
  if (reply.status === 401) return { kind: 'login' }
  if (result) return { kind: 'server', name: nameIn(result) }
  if (error) return { kind: 'server', name: undefined }
  return reply.ended === 'time' ? { kind: 'silent' } : { kind: 'other', status: reply.status }
}

async function endSession(
  peers: Peers,
  url: URL,
  { reply }: McpReply,
  token: string | undefined,
): Promise<void> {
  const session = header(reply, headerName.sessionId)
  if (session === undefined) return
  // If the server rejects this request, the session expires on its own.
  await peers.ask(url, { method: 'DELETE', headers: credentials({ session, token }), bodyMs: 0 })
}

function nameIn(result: JsonRecord): string | undefined {
  const meta = result['_meta']
  const inMeta = isFields(meta) ? meta[metaKey.serverInfo] : undefined
  const info = result['serverInfo'] ?? inMeta
  return isFields(info) && typeof info['name'] === 'string' ? info['name'] : undefined
}
