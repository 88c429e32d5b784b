/**
 * Posts JSON to a remote decision service and reads its response: status 200, application/json, within time and size
 * limits.
 *
 * Any other response is a failure, never a decision: another status, a redirect, another content type, an oversized
 * body. The caller's token is never sent.
 */
import { ModuleError, timerMs } from '../../../schemas/index.ts'
import { FetchRefusedError, followTls, type Log, makeFetch, type TlsFiles } from '../../net/index.ts'

/** The reason for a missing decision, used as a metric label. */
export type FailureReason =
  | 'unreachable'
  | 'timeout'
  | 'status'
  | 'redirect'
  | 'content_type'
  | 'too_large'
  | 'oversized'
  | 'malformed'
  | 'mismatch'
  | 'patch'
  | 'circuit_open'
  | 'busy'
  | 'list_timeout'

/** Thrown when there is no decision. The message contains nothing from the response except the status. */
export class DecisionFailure extends ModuleError {
  readonly reason: FailureReason
  /** True when the service seems to be down, regardless of the query. */
  readonly isDown: boolean
  /** Status of the response, if the status is the reason for the failure. */
  readonly status: number | undefined
  constructor(
    reason: FailureReason,
    message: string,
    {
      isDown = false,
      status,
      cause,
    }: { readonly isDown?: boolean; readonly status?: number; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.reason = reason
    this.isDown = isDown
    this.status = status
  }
}

export interface JsonPostSettings extends TlsFiles {
  readonly url: string
  /** Time limit for one response, as a duration. */
  readonly timeout: string
}

export interface JsonPostOptions {
  /** Name of the remote service in messages. */
  readonly who: string
  /** Configuration path of the settings, for error messages. */
  readonly field: string
  readonly maxAnswerBytes: number
  readonly log: Log
}

export interface JsonPost {
  /** Returns the body of the response. Rejects with DecisionFailure, or with the signal's reason. */
  post(
    body: Buffer | string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Buffer>
  close(): Promise<void>
}

/** Statuses that a load balancer in front of an unavailable service returns. */
const downStatus: ReadonlySet<number> = new Set([502, 503, 504])
/**
 * Error codes of connections that ended during a request, for example because of an idle timeout or a server restart.
 */
const lostCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeJsonPost(
  settings: JsonPostSettings,
  { who, field, maxAnswerBytes, log }: JsonPostOptions,
): JsonPost {
  const isTls = new URL(settings.url).protocol === 'https:'
  const fetch = makeFetch({
    tls: isTls ? followTls(settings, field, log) : undefined,
    timeoutMs: timerMs(settings.timeout),
    maxBytes: maxAnswerBytes,
    maxRedirects: 0,
    allowHttp: true,
  })

  async function send(
    body: Buffer | string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const all = { 'content-type': 'application/json', accept: 'application/json', ...headers }
    const sent = typeof body === 'string' ? body : new Uint8Array(body)
    try {
      return await fetch(settings.url, { method: 'POST', headers: all, body: sent, signal })
    } catch (error) {
      signal?.throwIfAborted()
      throw failureOf(error, who)
    }
  }

  return {
    async post(body, headers, signal) {
      const response = await send(body, headers, signal).catch((failure: unknown) =>
        // Retries a query, which has no side effects.
        wasLost(failure) ? send(body, headers, signal) : Promise.reject(failure),
      )
      return readBody(response, who)
    },
    close: () => fetch.close(),
  }
}

async function readBody(response: Response, who: string): Promise<Buffer> {
  const { status } = response
  if (status >= 300 && status < 400)
    throw new DecisionFailure('redirect', `${who} returned a redirect (status ${status})`, { status })
  if (status !== 200) {
    const isDown = downStatus.has(status)
    throw new DecisionFailure('status', `${who} returned status ${status}`, { isDown, status })
  }
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json[ \t]*(?:;|$)/i.test(type))
    throw new DecisionFailure('content_type', `the response from ${who} is not application/json`)
  return Buffer.from(await response.arrayBuffer())
}

function failureOf(error: unknown, who: string): DecisionFailure {
  if (error instanceof FetchRefusedError && error.code === 'TIMED_OUT')
    return new DecisionFailure('timeout', `${who} did not respond in time`, { isDown: true, cause: error })
  if (error instanceof FetchRefusedError && error.code === 'ANSWER_TOO_LARGE')
    return new DecisionFailure('too_large', `the response from ${who} is too large`, { cause: error })
  return new DecisionFailure('unreachable', `${who} cannot be reached`, { isDown: true, cause: error })
}

function wasLost(failure: unknown): boolean {
  for (let at: unknown = failure; at instanceof Error; at = at.cause) {
    if ('code' in at && lostCodes.has(at.code)) return true
  }
  return false
}
