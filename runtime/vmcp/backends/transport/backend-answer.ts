/**
 * The backend's own explanation of a failed request. Operators see the explanation in the log and in `/status`. Clients
 * never receive the explanation.
 *
 * Only responses to Gatehouse's own requests (initialize, lists, pings) are quoted, because responses to calls may
 * repeat a caller's data. The text is short and contains no line breaks. Credentials and session ids that Gatehouse
 * sent to the backend are masked.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { jsonFields, ModuleError } from '../../../../schemas/index.ts'
import { headerName } from '../../../mcp/index.ts'
import { peerWords, wordsOf } from '../../../oauth/index.ts'
import { rejectsHost } from '../../../net/index.ts'
import { redactText } from '../../../observe/index.ts'

/**
 * `host`: the backend does not accept the Host header. `path`: no MCP server exists at this path. `page`: the response
 * is a web page. `rejected`: the response is an error about the request. `other`: anything else, such as a failure in
 * the backend itself.
 */
export type AnswerKind = 'host' | 'path' | 'page' | 'rejected' | 'other'

export class BackendAnswer extends ModuleError {
  readonly kind: AnswerKind
  /** The explanation. Undefined if the backend sent no explanation or if operators must not see it. */
  readonly text: string | undefined
  /** Status of the HTTP response. Undefined for a JSON-RPC error. */
  readonly httpStatus: number | undefined

  constructor(
    what: string,
    kind: AnswerKind,
    text: string | undefined,
    { httpStatus, cause }: { readonly httpStatus?: number; readonly cause?: unknown } = {},
  ) {
    super(text === undefined ? what : `${what}: ${text}`, { cause })
    this.kind = kind
    this.text = text
    this.httpStatus = httpStatus
  }
}

/** Returns the backend's explanation of an error. Returns undefined if the backend sent no explanation. */
export function findAnswer(error: unknown): BackendAnswer | undefined {
  let cause = error
  for (let depth = 0; depth < 8 && cause instanceof Error; depth++) {
    if (cause instanceof BackendAnswer) return cause
    cause = cause.cause
  }
  return undefined
}

/** Headers that contain no secret. */
const openHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'content-type',
  'traceparent',
  'tracestate',
  headerName.protocolVersion,
  headerName.method,
  headerName.name,
  headerName.lastEventId,
])
const minSecret = 4

/** The headers of recent requests to one backend. The values of these headers are masked in the backend's output. */
export type SentHeaders = Readonly<Record<string, string>>[]

function withoutSecrets(text: string, sent: SentHeaders, more: readonly string[]): string {
  const secrets = new Set(more)
  for (const headers of sent)
    for (const name of Object.keys(headers))
      if (!openHeaders.has(name.toLowerCase()))
        for (const part of secretPartsOf(name, headers[name] ?? '')) secrets.add(part)
  let masked = text
  // A secret may contain another secret, so replace longer secrets first.
  for (const secret of [...secrets].sort((a, b) => b.length - a.length))
    if (secret.length >= minSecret) for (const form of formsOf(secret)) masked = withoutText(masked, form)
  return masked
}

/**
 * Returns the forms in which a backend may repeat a secret. The forms are the secret itself and its encodings in JSON,
 * in a URL and in HTML.
 */
function formsOf(secret: string): ReadonlySet<string> {
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
    html.replaceAll('"', '&quot;'),
  ])
}

/** Removes every occurrence of a secret, ignoring case. */
function withoutText(text: string, secret: string): string {
  const wanted = secret.toLowerCase()
  const lower = text.toLowerCase()
  // Some characters have a lowercase form of a different length.
  if (lower.length !== text.length) return text.replaceAll(secret, '[redacted]')
  let result = ''
  let from = 0
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    result += `${text.slice(from, at)}[redacted]`
    from = at + wanted.length
  }
  return result + text.slice(from)
}

/**
 * Returns the secret parts of a header. These are the whole value, the credential without the scheme, the password in
 * Basic credentials, and the values of individual cookies.
 */
function secretPartsOf(name: string, value: string): string[] {
  if (name.toLowerCase() === 'cookie')
    return [value, ...value.split(';').map((pair) => pair.slice(pair.indexOf('=') + 1).trim())]
  const [, scheme = '', credential = ''] = /^(\S+) +(\S.*)$/.exec(value) ?? []
  if (credential === '') return [value]
  if (scheme.toLowerCase() !== 'basic') return [value, credential]
  const plain = Buffer.from(credential, 'base64').toString()
  return [value, credential, plain, plain.slice(plain.indexOf(':') + 1)]
}

export interface AnsweredRequest {
  readonly sentHeaders: SentHeaders | undefined
  /** True if operators are allowed to see the text. */
  readonly isQuoted: boolean
}

export interface ReceivedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Maximum number of bytes that are read from a body. */
const maxRead = 16 * 1024

/** Explains an HTTP response that is not the expected message. */
export function explainResponse(
  response: ReceivedResponse,
  request: AnsweredRequest,
  cause?: unknown,
): BackendAnswer {
  const { status, headers, body } = response
  const session = headers[headerName.sessionId]
  const secrets = typeof session === 'string' ? [session] : []
  const raw = maskSecrets(body.toString('utf8', 0, Math.min(body.length, maxRead)), request, secrets)
  const isPage =
    /^\s*text\/html\b/i.test(headers['content-type'] ?? '') || /^\s*<(?:!doctype html|html)\b/i.test(raw)
  const text = wordsOf(raw, jsonFields(raw))
  return new BackendAnswer(
    `HTTP ${status}`,
    answerKindOf(status, text, isPage),
    request.isQuoted ? text : undefined,
    { httpStatus: status, cause },
  )
}

/** Explains a JSON-RPC error. `sessionId` is the session to which the error belongs. */
export function explainRpcError(
  error: Buffer | undefined,
  request: AnsweredRequest,
  sessionId?: string,
): BackendAnswer {
  const raw = maskSecrets(
    error?.toString('utf8', 0, maxRead) ?? '',
    request,
    sessionId === undefined ? [] : [sessionId],
  )
  const { code, message } = jsonFields(raw) ?? {}
  const text = typeof message === 'string' ? peerWords(message) : undefined
  const what = typeof code === 'number' ? `error ${code}` : 'an error'
  return new BackendAnswer(
    what,
    rejectsHost(400, text) ? 'host' : 'rejected',
    request.isQuoted ? text : undefined,
  )
}

/** Masks the given headers and known forms of credentials, and shortens the text. */
export function maskedText(text: string, sent: SentHeaders, more: readonly string[] = []): string {
  return redactText(withoutSecrets(withoutNeedlessEscapes(text), sent, more).slice(0, maxRead))
}

const uuid = /\b[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}\b/gi

function maskSecrets(text: string, { sentHeaders }: AnsweredRequest, secrets: readonly string[]): string {
  return maskedText(text, sentHeaders ?? [], sentHeaders ? secrets : []).replaceAll(uuid, '…')
}

/** Encodes JSON again. An escape such as `\/` would otherwise hide a credential from a search. */
function withoutNeedlessEscapes(text: string): string {
  const fields = text.includes('\\') ? jsonFields(text) : undefined
  return fields === undefined ? text : JSON.stringify(fields)
}

function answerKindOf(status: number, text: string | undefined, isPage: boolean): AnswerKind {
  if (rejectsHost(status, text)) return 'host'
  if (status === 404 || status === 405 || status === 410) return 'path'
  if (status >= 500) return 'other'
  if (isPage) return 'page'
  return status >= 400 ? 'rejected' : 'other'
}
