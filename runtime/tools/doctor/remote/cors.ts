/**
 * Checks CORS for browser clients: the preflight of a request with a token, and whether scripts can read the required
 * headers.
 * Source: Fetch standard, CORS protocol; MCP 2025-11-25, transports.
 */
import { headerName } from '../../../mcp/index.ts'
import { header, isFailure, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { networkFailureText } from '../../../net/index.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { quoted, type RemoteFacts } from './facts.ts'

const requestHeaders = ['authorization', 'content-type', headerName.protocolVersion, headerName.sessionId]
const responseHeaders = ['www-authenticate', headerName.sessionId]

export async function checkCors({ target, peers, options }: RemoteFacts): Promise<CheckOutcome> {
  const { origin } = options
  if (origin === undefined) return skipped('requires --origin: applies only to browser clients')
  const proof = `curl -si -X OPTIONS ${quoted(target)} -H ${quoted(`origin: ${origin}`)} -H 'access-control-request-method: POST'`
  const preflight = await peers.ask(target, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': requestHeaders.join(','),
    },
  })
  if (isFailure(preflight)) return failed('cors.refused', networkFailureText(preflight), { proof })
  if (preflight.status < 200 || preflight.status > 299 || !allows(preflight, origin)) {
    const allowed = header(preflight, 'access-control-allow-origin') ?? 'no origin'
    return failed('cors.refused', `status ${preflight.status}, allows ${allowed}`, { proof })
  }
  const missing = requestHeaders.filter((name) => !lists(preflight, 'access-control-allow-headers', name))
  if (missing.length > 0) return failed('cors.headers', `not allowed: ${missing.join(', ')}`, { proof })
  return checkExposed({ target, peers }, origin, proof)
}

async function checkExposed(
  { target, peers }: Pick<RemoteFacts, 'target' | 'peers'>,
  origin: string,
  proof: string,
): Promise<CheckOutcome> {
  const reply = await peers.ask(target, {
    method: 'POST',
    headers: { origin, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    bodyMs: 0,
  })
  if (isFailure(reply)) return failed('cors.refused', networkFailureText(reply), { proof })
  if (!allows(reply, origin))
    return failed('cors.refused', `the response itself (status ${reply.status}) allows no origin`, { proof })
  const hidden = responseHeaders.filter((name) => !lists(reply, 'access-control-expose-headers', name))
  return hidden.length === 0
    ? ok(origin)
    : warning('cors.exposed', `hidden from scripts: ${hidden.join(', ')}`, { proof })
}

function allows(reply: ProbeReply, origin: string): boolean {
  const value = header(reply, 'access-control-allow-origin')
  return value === '*' || value === origin
}

/** `*` does not include Authorization. */
function lists(reply: ProbeReply, name: string, wanted: string): boolean {
  const listed = new Set((header(reply, name) ?? '').split(',').map((item) => item.trim().toLowerCase()))
  return listed.has(wanted) || (listed.has('*') && wanted !== 'authorization')
}
