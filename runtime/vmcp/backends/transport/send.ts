/**
 * Sends one request to a backend in somebody's name: headers in their order of precedence, credentials last.
 *
 * Lowest are headers passed through from the client, then those that the operator configured, then what the protocol
 * needs, then the credential. When the backend refuses a credential that can be renewed, the request is sent once
 * more: after a 401 it was not carried out.
 * Source: docs/reference/specification/virtual-server.md (passthroughHeaders, outgoingAuth).
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject, maxBackendStateBytes } from '../../../mcp/index.ts'
import { signalOf } from '../../../net/index.ts'
import { type Outcome, sizeOf } from '../../model/outcome.ts'
import type { ChannelTarget, RequestLimits, Sender } from './target.ts'
import { type AnsweredRequest, answerOf } from './backend-answer.ts'
import { type BackendResponse, type BackendRequest, envelopeBytes, exchangeWithBackend } from './http.ts'
import type { ResponseLimit } from '../../model/delivery.ts'

/** Requests that change nothing at a backend. */
const repeatableMethods: ReadonlySet<string> = new Set([
  'completion/complete',
  'initialize',
  'ping',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'server/discover',
  'tools/list',
])

/** Requests whose result goes to a client. */
const calls: ReadonlySet<string> = new Set([
  'completion/complete',
  'prompts/get',
  'resources/read',
  'tools/call',
])

/** The gateway reads these itself: a page is checked item by item, so that it is held to less than a call. */
const listMethods: ReadonlySet<string> = new Set([
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tools/list',
])
const maxPageBytes = 8 * 1024 * 1024

/** By which a backend says what it is. */
const openings: ReadonlySet<string> = new Set(['initialize', 'server/discover'])
const maxOpeningBytes = 1024 * 1024

/**
 * Returns the outcome of a request. Throws BACKEND_RESULT_TOO_LARGE or BACKEND_PROTOCOL when the outcome exceeds the
 * limit of its kind, or contains a `requestState` that Gatehouse would reject when the client returns it.
 */
export function withinLimit(
  { limits }: Pick<ChannelTarget, 'limits'>,
  rpcMethod: string,
  outcome: Outcome,
): Outcome {
  const limit = resultLimit(rpcMethod, limits)
  if (limit && sizeOf(outcome) > limit.bytes - envelopeBytes) throw limit.error()
  if (outcome.kind === 'input') refuseLongState(outcome.result)
  return outcome
}

function refuseLongState(result: Buffer): void {
  const state = new JsonObject(result).raw('requestState')
  if (state === undefined || state.length <= maxBackendStateBytes) return
  throw new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
    detail: `requestState is larger than ${maxBackendStateBytes} bytes`,
  })
}

/** Returns the limit for the result of a method: the smaller one of its own and of `given`, which counts no envelope. */
function resultLimit(
  rpcMethod: string | undefined,
  { maxResultBytes }: RequestLimits = {},
  given?: ResponseLimit,
): ResponseLimit | undefined {
  let limit: ResponseLimit | undefined
  if (rpcMethod !== undefined && listMethods.has(rpcMethod))
    limit = ownLimit(`one page of ${rpcMethod}`, maxPageBytes)
  else if (rpcMethod !== undefined && openings.has(rpcMethod))
    limit = ownLimit(`the response to ${rpcMethod}`, maxOpeningBytes)
  else if (maxResultBytes !== undefined && rpcMethod !== undefined && calls.has(rpcMethod))
    limit = {
      bytes: maxResultBytes + envelopeBytes,
      error: () =>
        new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
          detail: `the result is larger than operational.maxResultBytes allows (${maxResultBytes} bytes)`,
        }),
    }
  if (!given) return limit
  const bytes = given.bytes + envelopeBytes
  return limit && limit.bytes <= bytes ? limit : { ...given, bytes }
}

function ownLimit(what: string, bytes: number): ResponseLimit {
  const detail = `${what} is larger than ${bytes} bytes`
  return {
    bytes: bytes + envelopeBytes,
    error: () => new GatehouseError('BACKEND_PROTOCOL', { detail, cause: new Error(detail) }),
  }
}

/** True when a request may be sent once more without knowing whether it was carried out. */
export function isRepeatable(rpcMethod: string | undefined): boolean {
  return rpcMethod !== undefined && repeatableMethods.has(rpcMethod)
}

/** Describes a request for the explanation of its failure. Requests without a JSON-RPC method are Gatehouse's own. */
export function answered(target: ChannelTarget, rpcMethod: string | undefined): AnsweredRequest {
  return { sent: target.sent, isQuoted: rpcMethod === undefined || isOwnRequest(rpcMethod) }
}

/** True for Gatehouse's own requests. No client sees the backend's error. */
export function isOwnRequest(rpcMethod: string | undefined): boolean {
  return (
    rpcMethod === 'ping' ||
    (rpcMethod !== undefined && (openings.has(rpcMethod) || listMethods.has(rpcMethod)))
  )
}

/** The error for a successful response that is not a message. */
export function unreadableResponse(
  response: BackendResponse,
  target: ChannelTarget,
  rpcMethod: string | undefined,
  cause: unknown,
): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', {
    cause: answerOf(response, answered(target, rpcMethod), cause),
  })
}

/** Headers of so many requests are masked in texts of the backend. */
const rememberedRequests = 64

export interface AuthorizedRequest
  extends Omit<BackendRequest, 'headers' | 'url' | 'repeatable' | 'onMislabelled'> {
  /** JSON-RPC method of the request that this belongs to, if it is one. */
  readonly rpcMethod?: string | undefined
  /** Default: the target's. */
  readonly url?: URL
  /** What the protocol needs, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** Rejects as exchangeWithBackend, and with what the credentials are rejected with. */
export async function sendToBackend(
  target: ChannelTarget,
  sender: Sender,
  request: AuthorizedRequest,
): Promise<BackendResponse> {
  const { credentials, dispatcher, sent } = target
  const url = request.url ?? target.url
  const { rpcMethod } = request
  const repeatable = rpcMethod !== undefined && repeatableMethods.has(rpcMethod)
  const limit = resultLimit(rpcMethod, target.limits, request.limit)
  const onMislabelled = (): void => target.deviations?.note('content_type')
  for (let attempt = 0; ; attempt++) {
    const headers: Record<string, string> = {
      ...sender.headers,
      ...target.trace?.(),
      ...target.headers,
      'accept-encoding': 'identity',
      ...request.headers,
    }
    const outgoing = { ...request, url, headers, repeatable, limit, onMislabelled }
    const pending = credentials?.apply(outgoing, sender.caller, signalOf(request.signal))
    if (pending) await pending
    sent?.push(outgoing.headers)
    if (sent && sent.length > rememberedRequests) sent.shift()
    const response = await exchangeWithBackend(dispatcher, outgoing)
    if (response.status !== 401 || attempt > 0 || !credentials?.refused(outgoing)) return response
  }
}
