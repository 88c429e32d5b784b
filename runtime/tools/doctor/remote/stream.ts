/**
 * Checks that event streams pass through proxies in front of the server: headers must arrive immediately, without
 * compression or buffering. With `watchMs`, also checks that an idle stream stays open.
 *
 * A stateless server confirms a subscription with its first event, which also reveals a buffered body. A session stream
 * does not start with an event, so only the headers of the GET stream are checked.
 */
import { eventStreamType, headerName, jsonType, metaKey, statelessVersion } from '../../../mcp/index.ts'
import { header, isFailure, mediaType, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { networkFailureText } from '../../../net/index.ts'
import { credentials } from '../../../toolkit/mcp-client/mcp.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { quoted, type RemoteFacts } from './facts.ts'

export async function checkStream(facts: RemoteFacts): Promise<CheckOutcome> {
  const first = facts.isStateless === true ? await subscription(facts) : undefined
  if (facts.session === undefined) return first ?? skipped('no session')
  return first === undefined || first.result === 'ok' ? getStream(facts) : first
}

async function getStream(facts: RemoteFacts): Promise<CheckOutcome> {
  const { target, peers, options, session, token } = facts
  const proof = `curl -sN ${quoted(target)} -H 'accept: text/event-stream' -H 'mcp-session-id: …'`
  const reply = await peers.ask(target, {
    method: 'GET',
    headers: {
      accept: eventStreamType,
      'accept-encoding': 'gzip, br',
      ...credentials({ session: session?.id, version: session?.version, token }),
    },
    bodyMs: options.watchMs,
  })
  if (isFailure(reply)) {
    if (reply.failure !== 'timeout') return failed('stream.type', networkFailureText(reply), { proof })
    return failed('stream.buffered', 'POST works, but the response headers of the GET stream never arrive', {
      proof,
    })
  }
  if (reply.status === 405) return ok('the server does not support the GET stream (status 405)')
  const seen = transport(reply, proof)
  if (seen !== undefined) return seen
  if (options.watchMs === 0) return ok('headers arrived immediately')
  if (reply.ended === 'time') return ok(`an idle stream stayed open for ${options.watchMs / 1000} s`)
  return failed('stream.cut', 'the stream ended while it was being watched', { proof })
}

/** Returns problems that are visible in the headers. */
function transport(reply: ProbeReply, proof: string): CheckOutcome | undefined {
  const type = mediaType(reply)
  if (reply.status !== 200 || type !== eventStreamType) {
    return warning('stream.type', `status ${reply.status}, ${type || 'no content type'}`, { proof })
  }
  if (header(reply, 'content-length') !== undefined) {
    return failed('stream.length', `Content-Length: ${header(reply, 'content-length') ?? ''}`, { proof })
  }
  const coding = header(reply, 'content-encoding')
  if (coding !== undefined && coding !== 'identity') {
    return warning('stream.compressed', `Content-Encoding: ${coding}`, { proof })
  }
  return undefined
}

async function subscription({ target, peers, token }: RemoteFacts): Promise<CheckOutcome> {
  const method = 'subscriptions/listen'
  const proof = `curl -sN ${quoted(target)} -d '{"jsonrpc":"2.0","id":1,"method":"${method}",…}'`
  let isFirst = false
  const reply = await peers.ask(target, {
    method: 'POST',
    headers: {
      accept: `${jsonType}, ${eventStreamType}`,
      'accept-encoding': 'gzip, br',
      'content-type': jsonType,
      [headerName.method]: method,
      ...credentials({ version: statelessVersion, token }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        notifications: { toolsListChanged: true },
        _meta: {
          [metaKey.protocolVersion]: statelessVersion,
          [metaKey.clientInfo]: { name: 'gatehouse-doctor', version: '1' },
          [metaKey.clientCapabilities]: {},
        },
      },
    }),
    until: () => (isFirst = true),
  })
  if (isFailure(reply)) {
    if (reply.failure !== 'timeout') return failed('stream.type', networkFailureText(reply), { proof })
    return failed(
      'stream.buffered',
      'requests work, but the response headers of a subscription never arrive',
      {
        proof,
      },
    )
  }
  // Subscriptions are optional.
  if (mediaType(reply) !== eventStreamType) return ok('the server does not support subscriptions')
  const seen = transport(reply, proof)
  if (seen !== undefined) return seen
  return isFirst
    ? ok('the first event arrived immediately')
    : failed('stream.buffered', 'headers arrive, but events do not', { proof })
}
