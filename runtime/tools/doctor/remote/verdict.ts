/**
 * Evaluates the server's response to a request that contains the token. Only the server can decide whether the audience
 * and scopes are acceptable. Each run sends the token once.
 */
import { headerName } from '../../../mcp/index.ts'
import { findChallenge, parseChallenges } from '../../../oauth/index.ts'
import { header } from '../../../toolkit/mcp-client/exchange.ts'
import { askMcp, credentials, initializeParams } from '../../../toolkit/mcp-client/mcp.ts'
import type { RemoteFacts, Verdict } from './facts.ts'

/** Returns `accepted` when the server cannot be reached. The session checks report that the server is unreachable. */
export async function verdictOn(facts: RemoteFacts): Promise<Verdict> {
  facts.verdict ??= await ask(facts)
  return facts.verdict
}

async function ask({ peers, target, token }: RemoteFacts): Promise<Verdict> {
  const request = { method: 'initialize', params: initializeParams, era: 'session', token } as const
  const got = await askMcp(peers, target, request)
  if ('failure' in got) return 'accepted'
  const { status, headers } = got.reply
  const session = header(got.reply, headerName.sessionId)
  if (session !== undefined)
    await peers.ask(target, { method: 'DELETE', headers: credentials({ session, token }) })
  if (status !== 401 && status !== 403) return 'accepted'
  const bearer = findChallenge(parseChallenges(headers['www-authenticate']), 'bearer')
  return bearer?.params.get('error') === 'insufficient_scope' ? 'scope' : 'refused'
}
