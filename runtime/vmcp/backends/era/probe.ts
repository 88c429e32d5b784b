/**
 * Sends one `server/discover` request to determine which era a backend uses.
 *
 * A backend is stateless if its response declares the stateless era, or if it returns an error that exists only in the
 * stateless era. Errors unrelated to the protocol (credentials, overload, timeouts) are inconclusive.
 * Source: MCP 2026-07-28, versioning and streamable HTTP, "Backward Compatibility".
 */
import {
  declaresStateless,
  eraOfError,
  headerName,
  JsonObject,
  type Message,
  nativeEra,
  requestMessage,
  requestMeta,
  statelessVersion,
} from '../../../mcp/index.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import type { BackendResponse, ExchangeControl } from '../transport/http.ts'
import { messageIn, readBackendMessage } from '../transport/read-message.ts'
import { sendToBackend } from '../transport/send.ts'

export type ProbedEra = 'session' | 'stateless' | 'unknown'

const inconclusive: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429])

/** Probes the backend. Rejects with BACKEND_UNREACHABLE or the signal's reason if no response arrives. */
export async function probeEra(
  target: ChannelTarget,
  info: string,
  sender: Sender,
  signal: AbortSignal,
): Promise<ProbedEra> {
  const params = `{"_meta":${requestMeta(info)}}`
  const body = requestMessage('1', 'server/discover', params)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    [headerName.protocolVersion]: statelessVersion,
    [headerName.method]: 'server/discover',
  }
  return new Promise((resolve, reject) => {
    const control: ExchangeControl = {}
    const onMessage = (message: Message): void => {
      if (message.method !== '') return
      resolve(eraIn(message))
      // The response ends the probe, even if the stream stays open.
      control.exchange?.fail(new Error('the stream stayed open after the response'))
    }
    sendToBackend(target, sender, {
      method: 'POST',
      headers,
      body,
      signal,
      rpcMethod: 'server/discover',
      control,
      onEvent: async (event) => {
        if (event.size === 0) return
        try {
          onMessage(await messageIn(event, target))
        } catch {
          // The event does not contain a JSON-RPC message. A later event may contain a message.
        }
      },
    })
      .then(async (response) => resolve(response.stream ? 'session' : await eraOf(response, target)))
      .catch((error: unknown) => reject(error instanceof Error ? error : new Error('probe failed')))
  })
}

async function eraOf(response: BackendResponse, target: ChannelTarget): Promise<ProbedEra> {
  if (response.status >= 500 || inconclusive.has(response.status)) return 'unknown'
  try {
    return eraIn(await readBackendMessage(response.body, target))
  } catch {
    // The body is not a JSON-RPC message, so the response does not belong to the stateless era.
    return 'session'
  }
}

function eraIn({ result, error }: Message): ProbedEra {
  if (result) return checkResult(new JsonObject(result))
  return (error && eraOfError(new JsonObject(error))) ?? 'session'
}

/**
 * Returns the era that a discovery result indicates. Some servers are only translators in front of a session-era
 * server. Gatehouse uses the session era with such a server, so each client keeps a separate session.
 */
function checkResult(result: JsonObject): ProbedEra {
  if (result.object('_meta')?.text(nativeEra) === 'session') return 'session'
  return declaresStateless(result.bytes) ? 'stateless' : 'session'
}
