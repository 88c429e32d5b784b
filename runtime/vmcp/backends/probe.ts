/**
 * Finds out which era a backend speaks, with one `server/discover`.
 *
 * A backend is stateless when it says so, or when it refuses with an error that only the stateless era knows. Errors
 * that say nothing about the protocol (credentials, overload, time-outs) leave the question open.
 * Source: MCP 2026-07-28, versioning and streamable HTTP, "Backward Compatibility".
 */
import {
  HEADER,
  JsonObject,
  META,
  NATIVE_ERA,
  requestMessage,
  RPC,
  scanMessage,
  STATELESS_VERSION,
} from '../../mcp/index.ts'
import type { ChannelTarget, Sender } from './session-era/channel.ts'
import type { BackendResponse } from './transport/http.ts'
import { sendToBackend } from './transport/send.ts'

export type Verdict = 'session' | 'stateless' | 'unknown'

const INCONCLUSIVE: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429])

/** Rejects with BACKEND_UNREACHABLE or the signal's reason when there was no response at all. */
export async function probeEra(
  target: ChannelTarget,
  info: string,
  sender: Sender,
  signal: AbortSignal,
): Promise<Verdict> {
  const params = `{"_meta":{"${META.protocolVersion}":"${STATELESS_VERSION}","${META.clientInfo}":${info},"${META.clientCapabilities}":{}}}`
  const body = requestMessage('"probe"', 'server/discover', params)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    [HEADER.protocolVersion]: STATELESS_VERSION,
    [HEADER.method]: 'server/discover',
  }
  let streamed: Buffer | undefined
  const response = await sendToBackend(target, sender, {
    method: 'POST',
    headers,
    body,
    signal,
    rpcMethod: 'server/discover',
    onEvent: (event) => {
      streamed ??= Buffer.from(event.data)
    },
  })
  return check(response, streamed ?? response.body)
}

function check(response: BackendResponse, body: Buffer): Verdict {
  if (response.status >= 500 || INCONCLUSIVE.has(response.status)) return 'unknown'
  try {
    const message = scanMessage(body)
    if (message.result) return checkResult(new JsonObject(message.result))
    if (message.error) return checkError(new JsonObject(message.error))
  } catch {
    // Not a message of JSON-RPC: nothing that the stateless era would answer.
  }
  return 'session'
}

/** What is only translated for a session-era server is better used in that era: each client keeps a session of its own. */
function checkResult(result: JsonObject): Verdict {
  if (result.object('_meta')?.text(NATIVE_ERA) === 'session') return 'session'
  return speaksStateless(result.value('supportedVersions'))
}

function checkError(error: JsonObject): Verdict {
  const code = error.value('code')
  if (code === RPC.headerMismatch || code === RPC.capabilityRequired) return 'stateless'
  if (code === RPC.versionUnsupported) return speaksStateless(error.object('data')?.value('supported'))
  return 'session'
}

function speaksStateless(versions: unknown): Verdict {
  return Array.isArray(versions) && versions.includes(STATELESS_VERSION) ? 'stateless' : 'session'
}
