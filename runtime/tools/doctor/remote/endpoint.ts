/** Checks the MCP endpoint: its response to `initialize` without a token, its clock, and its challenge. */
import { eventStreamType, headerName, jsonType } from '../../../mcp/index.ts'
import { findChallenge, parseChallenges } from '../../../oauth/index.ts'
import { header, isFailure, mediaType, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { networkFailureText, rejectsHost } from '../../../net/index.ts'
import {
  askMcp,
  explanation,
  initializeParams,
  type McpReply,
  withWords,
} from '../../../toolkit/mcp-client/mcp.ts'
import { failed, ok, type CheckOutcome, warning } from '../report/finding.ts'
import { isLocal, quoted, type RemoteFacts, shownUrl } from './facts.ts'

export async function checkEndpoint(facts: RemoteFacts): Promise<CheckOutcome> {
  const { target, peers } = facts
  const got = await askMcp(peers, target, { method: 'initialize', params: initializeParams, era: 'session' })
  const proof = initializeCommand(target)
  if ('failure' in got) return failed('endpoint.unreachable', networkFailureText(got), { proof })
  facts.first = got.reply
  await deleteSession(facts, got.reply)
  return describe(facts, got, proof)
}

/** Returns a curl command for the same handshake. */
export function initializeCommand(target: URL): string {
  return (
    `curl -si ${quoted(target)} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' ` +
    `-d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":${JSON.stringify(initializeParams)}}'`
  )
}

async function deleteSession({ target, peers }: RemoteFacts, reply: ProbeReply): Promise<void> {
  const id = header(reply, headerName.sessionId)
  if (id !== undefined) await peers.ask(target, { method: 'DELETE', headers: { [headerName.sessionId]: id } })
}

async function describe(
  facts: RemoteFacts,
  { reply, result, error }: McpReply,
  proof: string,
): Promise<CheckOutcome> {
  const { status } = reply
  const type = mediaType(reply)
  const words = explanation(reply)
  if (status >= 300 && status < 400) return redirectOutcome(facts, reply, proof)
  if (rejectsHost(status, words))
    return failed('endpoint.host', withWords(`status ${status}`, words), { proof })
  if (status === 401) return ok('requires a login (status 401)')
  if (status === 403 && reply.headers['www-authenticate'] !== undefined)
    return ok('requires a login (status 403)')
  if (result !== undefined || error !== undefined) {
    // An error can mean that the server supports only the stateless era. The session checks determine whether this is
    // the case.
    return ok(result === undefined ? `JSON-RPC error (status ${status})` : `MCP (status ${status})`)
  }
  if (reply.ended === 'large') return failed('endpoint.too-large', `more than 256 KiB of ${type}`, { proof })
  if (status === 404 || status === 405) return missingOutcome(facts, status, proof)
  if (status === 403)
    return failed('endpoint.forbidden', withWords('status 403 without a challenge', words), { proof })
  if (status === 429) return failed('endpoint.rate-limit', withWords('status 429', words), { proof })
  if (status === 502 || status === 503 || status === 504) {
    return failed('endpoint.upstream', withWords(`status ${status} ${type}`, words), { proof })
  }
  if (status >= 500) return failed('endpoint.server-error', withWords(`status ${status}`, words), { proof })
  if (type === 'text/html')
    return failed('endpoint.html', withWords(`status ${status}, a web page`, words), { proof })
  const ended = type === eventStreamType && reply.ended === 'time' ? ', and no response in the stream' : ''
  return failed(
    'endpoint.not-mcp',
    withWords(`status ${status}, ${type || 'no content type'}${ended}`, words),
    { proof },
  )
}

function redirectOutcome({ target }: RemoteFacts, reply: ProbeReply, proof: string): CheckOutcome {
  const location = header(reply, 'location') ?? ''
  const to = URL.canParse(location, target.href) ? new URL(location, target) : undefined
  const seen = `status ${reply.status} to ${to ? shownUrl(to) : 'nowhere'}`
  const fix = to
    ? `Use ${shownUrl(to)}: on a redirect, clients drop the Authorization header or change POST to GET.`
    : undefined
  return failed('endpoint.redirect', seen, { proof, ...(fix !== undefined && { fix }) })
}

/**
 * Explains status 404 or 405: the server uses the deprecated transport or another common path, or there is no server.
 */
async function missingOutcome(facts: RemoteFacts, status: number, proof: string): Promise<CheckOutcome> {
  const { target, peers } = facts
  const stream = await peers.ask(target, {
    method: 'GET',
    headers: { accept: eventStreamType },
    until: () => true,
  })
  if (!isFailure(stream) && stream.status === 200 && mediaType(stream) === eventStreamType) {
    facts.isHttpSse = true
    return warning('endpoint.http-sse', 'GET opens an event stream, but POST is rejected')
  }
  for (const path of ['/mcp', '/sse', '/']) {
    if (path === target.pathname) continue
    const other = new URL(path, target)
    const got = await peers.ask(other, {
      method: path === '/sse' ? 'GET' : 'POST',
      headers: { accept: `${jsonType}, ${eventStreamType}`, 'content-type': jsonType },
      ...(path !== '/sse' && {
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: {} }),
      }),
      until: () => true,
    })
    if (isFailure(got) || !looksLikeMcp(got)) continue
    return failed('endpoint.not-found', `status ${status} here, but there is a response at ${path}`, {
      proof,
      fix: `Try ${shownUrl(other)}.`,
    })
  }
  return failed(status === 405 ? 'endpoint.method' : 'endpoint.not-found', `status ${status}`, { proof })
}

/** True for a login, an event stream or JSON, as opposed to an error page. */
function looksLikeMcp(reply: ProbeReply): boolean {
  const type = mediaType(reply)
  if (reply.status === 401) return reply.headers['www-authenticate'] !== undefined
  return reply.status < 404 && (type === eventStreamType || type === jsonType)
}

const warnMs = 5_000
const failMs = 60_000

/** `Date` has a resolution of one second. Adds half a second, the expected rounding error. */
export function checkClock(
  reply: ProbeReply | undefined,
  code: 'clock.skew' | 'issuer-clock.skew',
): CheckOutcome {
  const stamp = reply === undefined ? undefined : header(reply, 'date')
  const theirs = stamp === undefined ? Number.NaN : Date.parse(stamp) + 500
  if (reply === undefined || Number.isNaN(theirs)) return ok('the server sends no Date header')
  const skewMs = theirs - reply.at
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  // A cached response contains the time at which it was created.
  if (header(reply, 'age') !== undefined) return ok('not compared: the response was cached')
  if (Math.abs(skewMs) < warnMs + reply.roundTripMs) return ok(`${seconds} s apart`)
  const seen = `the server’s clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine’s`
  return Math.abs(skewMs) < failMs ? warning(code, seen) : failed(code, seen)
}

export async function checkChallenge(facts: RemoteFacts): Promise<CheckOutcome> {
  const reply = facts.first
  if (reply === undefined) return ok('not checked')
  if (reply.status !== 401 && reply.status !== 403) return openServer(facts)
  const proof = initializeCommand(facts.target)
  const outcome = readChallenge(facts, reply, proof)
  if (outcome.result === 'failed' || reply.status === 401) return outcome
  return failed('challenge.status', 'status 403 with a challenge', { proof })
}

function readChallenge(facts: RemoteFacts, reply: ProbeReply, proof: string): CheckOutcome {
  const value = reply.headers['www-authenticate']
  const challenges = parseChallenges(value)
  if (challenges.length === 0) {
    const renamed = Object.keys(reply.headers).find((name) => name.endsWith('-remapped-www-authenticate'))
    if (renamed !== undefined) return failed('challenge.renamed', `the header is named ${renamed}`, { proof })
    return failed('challenge.missing', 'status 401 without WWW-Authenticate', { proof })
  }
  const bearer = findChallenge(challenges, 'bearer', 'resource_metadata')
  if (bearer === undefined) {
    return failed('challenge.scheme', `the scheme is ${challenges.map(({ scheme }) => scheme).join(', ')}`, {
      proof,
    })
  }
  facts.challenge = bearer
  const named = bearer.params.get('resource_metadata')
  if (named === undefined)
    return warning('challenge.no-metadata', 'Bearer without resource_metadata', { proof })
  const url = URL.canParse(named) ? new URL(named) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== facts.target.protocol)) {
    return failed('challenge.metadata-url', `resource_metadata is ${named}`, { proof })
  }
  return ok('401 with a Bearer challenge')
}

/** Some servers accept a handshake without a login, but require a login for lists. */
async function openServer(facts: RemoteFacts): Promise<CheckOutcome> {
  const { target, peers } = facts
  const opened = await askMcp(peers, target, {
    method: 'initialize',
    params: initializeParams,
    era: 'session',
  })
  const session = 'reply' in opened ? header(opened.reply, headerName.sessionId) : undefined
  const listing = await askMcp(peers, target, { method: 'tools/list', era: 'session', session })
  if ('reply' in opened) await deleteSession(facts, opened.reply)
  if ('reply' in listing && listing.reply.status === 401) {
    const bearer = findChallenge(parseChallenges(listing.reply.headers['www-authenticate']), 'bearer')
    if (bearer !== undefined) facts.challenge = bearer
    return warning('challenge.late', 'initialize is open, but tools/list requires a login')
  }
  facts.isOpen = true
  return isLocal(facts)
    ? ok('open, on loopback')
    : warning('challenge.open', 'initialize works without a token')
}
