/**
 * Sends one request to a backend on behalf of a caller.
 *
 * Headers have this order of precedence, lowest first: passed through from the client, configured by the operator,
 * required by the protocol, credential. If the backend rejects a renewable credential with 401, the request is repeated
 * once. Repeating the request is safe because the backend did not execute it.
 * Source: docs/reference/specification/virtual-server.md (passthroughHeaders, outgoingAuth).
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject, maxBackendStateBytes } from '../../../mcp/index.ts'
import { signalOf } from '../../../net/index.ts'
import type { OutgoingRequest } from '../../../outgoing/index.ts'
import { type Outcome, sizeOf } from '../../model/outcome.ts'
import type { ChannelTarget, RequestLimits, Sender } from './target.ts'
import { type AnsweredRequest, explainResponse } from './backend-answer.ts'
import { type BackendResponse, type BackendRequest, envelopeBytes, exchangeWithBackend } from './http.ts'
import type { ResponseLimit } from '../../model/delivery.ts'

/** Request methods without side effects. */
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

/** Methods whose results Gatehouse returns to a client. */
const callMethods: ReadonlySet<string> = new Set([
  'completion/complete',
  'prompts/get',
  'resources/read',
  'tools/call',
])

/** A page of a list has a lower limit than a call's result, because every item is checked. */
const maxPageBytes = 8 * 1024 * 1024
const maxOpeningBytes = 1024 * 1024

/** Limits for the responses to Gatehouse's own requests, by method. */
const ownLimits: ReadonlyMap<string | undefined, ResponseLimit> = new Map([
  ...['prompts/list', 'resources/list', 'resources/templates/list', 'tools/list'].map(
    (method) => [method, ownLimit(`one page of ${method}`, maxPageBytes)] as const,
  ),
  ...['initialize', 'server/discover'].map(
    (method) => [method, ownLimit(`the response to ${method}`, maxOpeningBytes)] as const,
  ),
])

/**
 * Returns the outcome of a request. Throws BACKEND_RESULT_TOO_LARGE or BACKEND_PROTOCOL if the outcome exceeds the
 * limit for its kind. Throws BACKEND_RESULT_TOO_LARGE if the outcome contains a `requestState` that Gatehouse would
 * reject when the client returns it.
 */
export function withinLimit(
  { limits }: Pick<ChannelTarget, 'limits'>,
  rpcMethod: string,
  outcome: Outcome,
): Outcome {
  const limit = resultLimit(rpcMethod, limits)
  if (limit && sizeOf(outcome) > limit.bytes - envelopeBytes) throw limit.error()
  if (outcome.kind === 'input') rejectLongState(outcome.result)
  return outcome
}

function rejectLongState(result: Buffer): void {
  const state = new JsonObject(result).raw('requestState')
  if (state === undefined || state.length <= maxBackendStateBytes) return
  throw new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
    detail: `requestState is larger than ${maxBackendStateBytes} bytes`,
  })
}

/** Returns the smaller of a method's own limit and `given`. The `given` limit excludes the envelope. */
function resultLimit(
  rpcMethod: string | undefined,
  { maxResultBytes }: RequestLimits = {},
  requestLimit?: ResponseLimit,
): ResponseLimit | undefined {
  let limit = ownLimits.get(rpcMethod)
  if (maxResultBytes !== undefined && rpcMethod !== undefined && callMethods.has(rpcMethod))
    limit = {
      bytes: maxResultBytes + envelopeBytes,
      error: () =>
        new GatehouseError('BACKEND_RESULT_TOO_LARGE', {
          detail: `the result is larger than operational.maxResultBytes allows (${maxResultBytes} bytes)`,
        }),
    }
  if (!requestLimit) return limit
  const bytes = requestLimit.bytes + envelopeBytes
  return limit && limit.bytes <= bytes ? limit : { ...requestLimit, bytes }
}

function ownLimit(what: string, bytes: number): ResponseLimit {
  const detail = `${what} is larger than ${bytes} bytes`
  return {
    bytes: bytes + envelopeBytes,
    error: () => new GatehouseError('BACKEND_PROTOCOL', { detail, cause: new Error(detail) }),
  }
}

/** True if a request may be repeated even if it was executed. */
export function isRepeatable(rpcMethod: string | undefined): boolean {
  return rpcMethod !== undefined && repeatableMethods.has(rpcMethod)
}

/**
 * Returns the facts about a request that are needed to explain its failure. A request without a JSON-RPC method is one
 * of Gatehouse's own requests.
 */
export function describeRequest(target: ChannelTarget, rpcMethod: string | undefined): AnsweredRequest {
  return { sentHeaders: target.sentHeaders, isQuoted: rpcMethod === undefined || isOwnRequest(rpcMethod) }
}

/** True for Gatehouse's own requests. Clients do not see the backend's errors for these requests. */
export function isOwnRequest(rpcMethod: string | undefined): boolean {
  return rpcMethod === 'ping' || ownLimits.has(rpcMethod)
}

/** Returns the error for a successful response that contains no message. */
export function unreadableResponse(
  response: BackendResponse,
  target: ChannelTarget,
  rpcMethod: string | undefined,
  cause: unknown,
): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', {
    cause: explainResponse(response, describeRequest(target, rpcMethod), cause),
  })
}

/** Number of recent requests whose headers are masked in the backend's explanations. */
const rememberedRequests = 64

export interface AuthorizedRequest
  extends Omit<BackendRequest, 'headers' | 'url' | 'repeatable' | 'onMislabelled'> {
  /** JSON-RPC method of the request. Undefined for messages that are not requests. */
  readonly rpcMethod?: string | undefined
  /** URL of the request. Defaults to the target's URL. */
  readonly url?: URL
  /** Headers required by the protocol, with lowercase names. */
  readonly headers: Readonly<Record<string, string>>
  /** Returns the URL and the headers to send, after the credential has been added. */
  readonly finish?: ((request: OutgoingRequest) => Pick<OutgoingRequest, 'url' | 'headers'>) | undefined
  /** Overrides the rule of the JSON-RPC method: true if the request has no side effects. */
  readonly repeatable?: boolean
}

/**
 * Sends a request with credentials. Rejects with the same errors as `exchangeWithBackend`, or with an error from the
 * credential strategy.
 */
export async function sendToBackend(
  target: ChannelTarget,
  sender: Sender,
  request: AuthorizedRequest,
): Promise<BackendResponse> {
  const { credentials, dispatcher, login, sentHeaders, limits } = target
  const url = request.url ?? target.url
  const { rpcMethod } = request
  const repeatable = request.repeatable ?? (rpcMethod !== undefined && repeatableMethods.has(rpcMethod))
  const isLimited = request.limit !== undefined || limits?.maxResultBytes !== undefined
  const limit = isLimited ? resultLimit(rpcMethod, limits, request.limit) : ownLimits.get(rpcMethod)
  const onMislabelled = (): void => target.deviations?.note('content_type')
  for (let attempt = 0; ; attempt++) {
    const headers: Record<string, string> = {
      ...sender.headers,
      ...target.trace?.(),
      ...target.headers,
      'accept-encoding': 'identity',
      ...request.headers,
    }
    const outgoing: BackendRequest & OutgoingRequest = {
      ...request,
      url,
      headers,
      repeatable,
      limit,
      onMislabelled,
      proof: undefined,
    }
    const pending =
      credentials?.apply(outgoing, sender.caller, signalOf(request.signal)) ?? login?.apply(outgoing)
    if (pending) await pending
    sentHeaders?.push(outgoing.headers)
    if (sentHeaders && sentHeaders.length > rememberedRequests) sentHeaders.shift()
    const { finish } = request
    const response = await exchangeWithBackend(
      dispatcher,
      finish ? { ...outgoing, ...finish(outgoing) } : outgoing,
    )
    const { status } = response
    const authenticate = response.headers['www-authenticate']
    if (login && (status === 401 || status === 403)) {
      const isHandled = await login.rejected(outgoing, status, authenticate)
      if (!isHandled || attempt >= maxLoginAttempts) return response
    } else if (status !== 401 || attempt > 0 || !credentials?.refused(outgoing, authenticate)) return response
  }
}

/** Maximum number of retries after a rejected token; each retry uses a renewed token or another process's token. */
const maxLoginAttempts = 2
