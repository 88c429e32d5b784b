/**
 * Reopens a session that the target has lost. Sends the client's own initialize request again, then
 * `notifications/initialized` and the client's settings (watched resources, log level), and stores the new id. The
 * client keeps its session id.
 *
 * Each session has at most one recovery at a time, and all requests that need the session wait for the recovery.
 */
import {
  eventStreamType,
  headerName,
  JsonObject,
  type Message,
  notificationMessage,
  readServerMessage,
  type SseEvent,
  sseReader,
} from '../../mcp/index.ts'
import { type Dispatcher, Pieces } from '../../net/index.ts'
import type { TokenProof } from '../../oauth/index.ts'
import { EventIds } from '../model/event-ids.ts'
import type { Recovery, ProxiedSession } from '../model/session.ts'

export interface RecoveryRequest {
  readonly dispatcher: Dispatcher
  readonly origin: string
  readonly path: string
  /** The failed request's header lines. Lines that depend on the body or the session of that request are replaced. */
  readonly headers: readonly string[]
  /** Signs the proofs, if the credential in the header lines is bound to a key. */
  readonly proof?: TokenProof | undefined
  /** The session id that the target no longer recognizes. */
  readonly lostId: string
  readonly timeoutMs: number
}

const ownHeaders = new Set([
  'accept',
  'accept-encoding',
  'content-type',
  'content-encoding',
  headerName.sessionId,
  headerName.protocolVersion,
  headerName.lastEventId,
  headerName.method,
  headerName.name,
])
const maxResponseBytes = 1_048_576

/** Recovers the session. Does not throw. */
export async function recoverSession(session: ProxiedSession, request: RecoveryRequest): Promise<Recovery> {
  if (session.upstreamId !== request.lostId) return 'recovered'
  const { initBody } = session
  if (!initBody) return 'refused'
  session.recovering ??= reopen(session, initBody, request)
    .then((opened): Recovery => (opened ? 'recovered' : 'refused'))
    .catch((): Recovery => 'unreachable')
    .finally(() => {
      session.recovering = undefined
    })
  return session.recovering
}

/** Rejects when the target cannot be reached. */
async function reopen(session: ProxiedSession, initBody: Buffer, request: RecoveryRequest): Promise<boolean> {
  const opened = await post(request, initBody, [])
  const id = opened.headers[headerName.sessionId]
  const result = await readResult(opened)
  if (opened.statusCode !== 200 || typeof id !== 'string' || id === '' || !result) return false
  const version = new JsonObject(result).text('protocolVersion')
  const own = ['Mcp-Session-Id', id, ...(version === undefined ? [] : ['MCP-Protocol-Version', version])]
  const confirmed = await post(request, notificationMessage('notifications/initialized'), own)
  // A success status completes a notification, regardless of the body.
  confirmed.body.on('error', () => {}).destroy()
  if (confirmed.statusCode >= 300) return false
  await Promise.all([...session.state.values()].map((body) => setAgain(request, body, own)))
  session.upstreamId = id
  session.eventIds = new EventIds()
  return true
}

/** Ignores failures, because a session without one of its subscriptions is better than no session. */
async function setAgain(request: RecoveryRequest, body: Buffer, own: readonly string[]): Promise<void> {
  try {
    await readResult(await post(request, body, own))
  } catch {
    // Ignores a failure, as described above.
  }
}

/** Sends a request, and repeats it once if the target demands another nonce in the proof. */
async function post(
  request: RecoveryRequest,
  body: Buffer,
  more: readonly string[],
): Promise<Dispatcher.ResponseData> {
  const response = await postOnce(request, body, more)
  const url = request.origin + request.path
  if (!request.proof?.note(url, response.statusCode, response.headers)) return response
  response.body.on('error', () => {}).destroy()
  return postOnce(request, body, more)
}

function postOnce(
  request: RecoveryRequest,
  body: Buffer,
  more: readonly string[],
): Promise<Dispatcher.ResponseData> {
  const { proof, origin, path } = request
  const headers = [
    ...more,
    'Content-Type',
    'application/json',
    'Accept',
    'application/json, text/event-stream',
    'Accept-Encoding',
    'identity',
  ]
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i] ?? ''
    const isReplaced = ownHeaders.has(name.toLowerCase()) || (proof && name === 'DPoP')
    if (!isReplaced) headers.push(name, request.headers[i + 1] ?? '')
  }
  if (proof) headers.push('DPoP', proof.sign('POST', origin + path))
  return request.dispatcher.request({
    origin,
    path,
    method: 'POST',
    headers,
    body,
    headersTimeout: request.timeoutMs,
    bodyTimeout: request.timeoutMs,
    signal: AbortSignal.timeout(request.timeoutMs),
  })
}

/**
 * Returns the raw result of a response: from its body, or from the first result or error in an event stream. Undefined
 * if there is no result. Rejects when the response is too large.
 */
async function readResult({ headers, body }: Dispatcher.ResponseData): Promise<Buffer | undefined> {
  const type = headers['content-type']
  if (String(type).toLowerCase().startsWith(eventStreamType)) return resultInStream(body)
  const pieces = new Pieces()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    pieces.add(chunk)
    if (pieces.size > maxResponseBytes) throw new Error('the response is too large')
  }
  return (await responseIn(pieces.whole()))?.result
}

async function resultInStream(body: AsyncIterable<Buffer>): Promise<Buffer | undefined> {
  let response: Message | undefined
  let length = 0
  const events: SseEvent[] = []
  const reader = sseReader(maxResponseBytes, (event) => events.push(event))
  for await (const chunk of body) {
    reader.push(chunk)
    length += chunk.length
    for (const event of events.splice(0)) response ??= await responseIn(event.data())
    if (response) break
    if (length > maxResponseBytes) throw new Error('the stream contains no response')
  }
  return response?.result
}

/** Returns undefined for anything that is not a response. */
async function responseIn(bytes: Buffer | Promise<Buffer>): Promise<Message | undefined> {
  try {
    const message = await readServerMessage(bytes)
    return message.method === '' ? message : undefined
  } catch {
    return undefined
  }
}
