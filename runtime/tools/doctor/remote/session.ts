/**
 * Checks a session with the server in its protocol era: the handshake, the tools, the response to a request with an
 * unknown session id, and whether every request reaches the session. The caller ends the session.
 */
import { headerName, statelessVersion, allVersions } from '../../../mcp/index.ts'
import { findChallenge, parseChallenges } from '../../../oauth/index.ts'
import { header } from '../../../toolkit/mcp-client/exchange.ts'
import { type NetworkFailure, networkFailureText, rejectsHost } from '../../../net/index.ts'
import {
  askMcp,
  credentials,
  explanation,
  initializeParams,
  type McpReply,
  withWords,
} from '../../../toolkit/mcp-client/mcp.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { initializeCommand } from './endpoint.ts'
import { quantity } from '../../../toolkit/terminal/plain-text.ts'
import { type RemoteFacts, strings, text } from './facts.ts'

/** Enough calls to reach another replica, but too few to cause significant load. */
const affinityCalls = 8

export async function checkInitialize(facts: RemoteFacts): Promise<CheckOutcome> {
  const { target, peers, isOpen, token } = facts
  if (facts.isHttpSse === true) return skipped('the deprecated HTTP+SSE transport has a different handshake')
  if (isOpen !== true && token === undefined) return skipped('requires a login: use --token-file or --login')
  const stateless = await askMcp(peers, target, { method: 'server/discover', era: 'stateless', token })
  facts.isStateless =
    'result' in stateless && (strings(stateless.result, 'supportedVersions') ?? []).includes(statelessVersion)
  const got = await askMcp(peers, target, {
    method: 'initialize',
    params: initializeParams,
    era: 'session',
    token,
  })
  if (isFailureOf(got)) return failed('initialize.error', networkFailureText(got))
  const refused = refusal(got)
  if (refused !== undefined) return refused
  if (got.result === undefined) {
    if (facts.isStateless) return ok(`stateless (${statelessVersion}) only`)
    const words = got.error === undefined ? explanation(got.reply) : shortError(got.error)
    return failed('initialize.error', withWords(`status ${got.reply.status}`, words), {
      proof: initializeCommand(target),
    })
  }
  return openSession(facts, got)
}

function isFailureOf(got: McpReply | NetworkFailure): got is NetworkFailure {
  return 'failure' in got
}

function shortError({ code, message }: NonNullable<McpReply['error']>): string {
  return `error ${String(code)} ${typeof message === 'string' ? message : ''}`
}

/** Returns the outcome for a rejected host name, and for 401 and 403 responses whose challenge contains an error. */
function refusal({ reply }: McpReply): CheckOutcome | undefined {
  const words = explanation(reply)
  if (rejectsHost(reply.status, words))
    return failed('endpoint.host', withWords(`status ${reply.status}`, words))
  if (reply.status !== 401 && reply.status !== 403) return undefined
  const bearer = findChallenge(parseChallenges(reply.headers['www-authenticate']), 'bearer')
  const error = bearer?.params.get('error')
  const details = [error, bearer?.params.get('error_description')]
    .filter((part) => part !== undefined)
    .join(': ')
  const seen =
    details === '' ? withWords(`status ${reply.status}`, words) : `status ${reply.status}, ${details}`
  if (error === 'insufficient_scope') {
    return failed('initialize.scope', `${seen}; requires ${bearer?.params.get('scope') ?? 'other scopes'}`)
  }
  return failed('initialize.token', seen)
}

async function openSession(facts: RemoteFacts, { reply, result }: McpReply): Promise<CheckOutcome> {
  const version = text(result, 'protocolVersion')
  if (version === undefined || !allVersions.includes(version)) {
    return failed('initialize.version', `protocolVersion is ${version ?? 'missing'}`)
  }
  const id = header(reply, headerName.sessionId)
  if (id !== undefined && !/^[\x21-\x7e]+$/.test(id)) {
    return failed('initialize.session-id', `an id of ${id.length} characters`)
  }
  facts.session = { id, version }
  await askMcp(facts.peers, facts.target, {
    method: 'notifications/initialized',
    notification: true,
    era: 'session',
    session: id,
    version,
    token: facts.token,
  })
  const eras = facts.isStateless === true ? `${version}, and stateless ${statelessVersion}` : version
  const info = result?.['serverInfo']
  const name = typeof info === 'object' && info !== null && 'name' in info ? String(info.name) : 'no name'
  return ok(`${name}, ${eras}`)
}

function inSession(facts: RemoteFacts, method: string, id = facts.session?.id) {
  const { target, peers, token, session } = facts
  const era = session === undefined ? 'stateless' : 'session'
  const request = { method, era, session: id, version: session?.version, token } as const
  return askMcp(peers, target, request)
}

export async function checkTools(facts: RemoteFacts): Promise<CheckOutcome> {
  if (facts.session === undefined && facts.isStateless !== true) return skipped('no session')
  const got = await inSession(facts, 'tools/list')
  if (isFailureOf(got)) return failed('tools.error', networkFailureText(got))
  const { reply, result, error } = got
  if (reply.ended === 'large') return warning('tools.too-large', 'more than 256 KiB in one page')
  if (reply.status === 404 && facts.session?.id !== undefined)
    return failed('tools.lost', 'status 404 in a new session')
  const tools = result?.['tools']
  if (!Array.isArray(tools)) {
    // A server that has only resources or prompts returns -32601.
    if (error?.code === -32601) return ok('the server offers no tools')
    const words = error === undefined ? explanation(reply) : shortError(error)
    return failed('tools.error', withWords(`status ${reply.status}`, words))
  }
  const more = text(result, 'nextCursor') === undefined ? '' : ' on the first page'
  return tools.length === 0
    ? warning('tools.empty', 'an empty list')
    : ok(`${quantity(tools.length, 'tool')}${more}`)
}

export async function checkUnknownSession(facts: RemoteFacts): Promise<CheckOutcome> {
  if (facts.session?.id === undefined) return skipped('the server has no sessions')
  const got = await inSession(facts, 'ping', 'gatehouse-doctor-no-such-session')
  if (isFailureOf(got)) return failed('tools.error', networkFailureText(got))
  if (got.reply.status === 404) return ok('404, as required')
  if (got.result !== undefined)
    return warning('session.accepted', 'the server accepted an invented session id')
  return warning('session.unknown-id', `status ${got.reply.status}`)
}

/** Sends every call over a separate connection, so that a load balancer can pass the calls to different replicas. */
export async function checkAffinity(facts: RemoteFacts): Promise<CheckOutcome> {
  if (facts.session?.id === undefined) return skipped('the server has no sessions')
  const calls = await Promise.all(Array.from({ length: affinityCalls }, () => inSession(facts, 'ping')))
  const lost = calls.filter((got) => 'reply' in got && (got.reply.status === 404 || got.reply.status === 400))
  if (lost.length === 0) return ok(`${affinityCalls} requests found the session`)
  return failed('session.affinity', `${lost.length} of ${affinityCalls} requests did not find the session`)
}

export async function endSession(facts: RemoteFacts): Promise<void> {
  const { session, target, peers, token } = facts
  delete facts.session
  if (session?.id === undefined) return
  await peers.ask(target, {
    method: 'DELETE',
    headers: credentials({ session: session.id, version: session.version, token }),
  })
}
