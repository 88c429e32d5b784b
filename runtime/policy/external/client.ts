/**
 * Asks the decision point one question over HTTP: POST `<url>/decision`, and 200 with `{"allow": true | false}`.
 *
 * Everything else is a failure, never a decision: another status, a redirect, another content type, a body that is too
 * large, no JSON, or whose `allow` is missing, doubled or no boolean. Credentials of the gateway itself are read from
 * files that may change; the caller's token is never sent.
 * Source: docs/guides/decision-point.md.
 */
import { readFileSync } from 'node:fs'
import { invalidConfig, ModuleError, type RuntimeDecisionPointHttp, timerMs } from '../../../schemas/index.ts'
import { rotatingSecret } from '../../config/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import { FetchRefusedError, makeFetch, type TlsMaterial } from '../../net/index.ts'

/** Why there was no decision; a label of metrics. */
export type FailureReason =
  | 'unreachable'
  | 'timeout'
  | 'status'
  | 'redirect'
  | 'content_type'
  | 'too_large'
  | 'malformed'
  | 'circuit_open'
  | 'busy'
  | 'list_timeout'

/** The decision point gave no decision. The message holds nothing of its response but the status. */
export class DecisionFailure extends ModuleError {
  readonly reason: FailureReason
  /** True when the decision point as such seems to be down, whatever it was asked. */
  readonly isDown: boolean
  constructor(
    reason: FailureReason,
    message: string,
    { isDown = false, cause }: { readonly isDown?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.reason = reason
    this.isDown = isDown
  }
}

export interface DecisionClient {
  /** True when it allows. Rejects with DecisionFailure, or with the signal's reason. */
  ask(question: string, signal: AbortSignal | undefined): Promise<boolean>
  close(): Promise<void>
}

const maxAnswerBytes = 64 * 1024
/** A balancer in front of a decision point that is down. */
const downStatus: ReadonlySet<number> = new Set([502, 503, 504])
/** Codes of connections that ended under a request: one that was idle too long, or a decision point that restarts. */
const lostCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeDecisionClient(http: RuntimeDecisionPointHttp): DecisionClient {
  const token = http.bearerTokenPath === undefined ? undefined : ownToken(http.bearerTokenPath)
  const fetch = makeFetch({
    tls: tlsMaterial(http),
    timeoutMs: timerMs(http.timeout),
    maxBytes: maxAnswerBytes,
    maxRedirects: 0,
    allowHttp: true,
  })
  const url = `${http.url.replace(/\/+$/, '')}/decision`

  async function send(question: string, signal: AbortSignal | undefined): Promise<Response> {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token ? { authorization: `Bearer ${token().reveal()}` } : {}),
    }
    try {
      return await fetch(url, { method: 'POST', headers, body: question, signal })
    } catch (error) {
      signal?.throwIfAborted()
      throw failureOf(error)
    }
  }

  return {
    async ask(question, signal) {
      const response = await send(question, signal).catch((failure: unknown) =>
        // A question changes nothing, so it may be asked twice.
        wasLost(failure) ? send(question, signal) : Promise.reject(failure),
      )
      return readAnswer(response)
    },
    close: () => fetch.close(),
  }
}

async function readAnswer(response: Response): Promise<boolean> {
  const { status } = response
  if (status >= 300 && status < 400)
    throw new DecisionFailure('redirect', `the decision point redirects (status ${status})`)
  if (status !== 200) {
    const isDown = downStatus.has(status)
    throw new DecisionFailure('status', `the decision point answered with status ${status}`, { isDown })
  }
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/(?:[a-z0-9.+-]+\+)?json[ \t]*(?:;|$)/i.test(type))
    throw new DecisionFailure('content_type', 'the response of the decision point is not application/json')
  try {
    const allow = new JsonObject(Buffer.from(await response.arrayBuffer())).value('allow')
    if (typeof allow === 'boolean') return allow
  } catch (cause) {
    throw new DecisionFailure('malformed', 'the response of the decision point is no JSON object', { cause })
  }
  throw new DecisionFailure('malformed', 'the response of the decision point has no boolean allow')
}

function failureOf(error: unknown): DecisionFailure {
  if (error instanceof FetchRefusedError && error.code === 'TIMED_OUT')
    return new DecisionFailure('timeout', 'the decision point did not answer in time', {
      isDown: true,
      cause: error,
    })
  if (error instanceof FetchRefusedError && error.code === 'ANSWER_TOO_LARGE')
    return new DecisionFailure('too_large', 'the response of the decision point is too large', {
      cause: error,
    })
  return new DecisionFailure('unreachable', 'the decision point cannot be reached', {
    isDown: true,
    cause: error,
  })
}

function wasLost(failure: unknown): boolean {
  for (let at: unknown = failure; at instanceof Error; at = at.cause) {
    if ('code' in at && lostCodes.has(at.code)) return true
  }
  return false
}

/** A token is sent as a header: it must be one line of what headers can hold. */
function ownToken(path: string): ReturnType<typeof rotatingSecret> {
  const token = rotatingSecret(path)
  if (!/^[\x21-\x7e]+$/.test(token().reveal()))
    throw invalidConfig(`incomingAuth.authz.httpv1.http.bearerTokenPath: the file ${path} holds no token`)
  return token
}

/** How often files of certificates are looked at again, in milliseconds. */
const lookEveryMs = 2_000

/** Follows its files like a rotating secret; half of a rotation leaves the last ones in use. */
function tlsMaterial(http: RuntimeDecisionPointHttp): (() => TlsMaterial) | undefined {
  const { caBundlePath, clientCertificatePath, clientKeyPath, insecureSkipVerify } = http
  if (new URL(http.url).protocol !== 'https:') return undefined
  const read = (): TlsMaterial => ({
    insecureSkipVerify,
    ca: pem(caBundlePath, 'caBundlePath'),
    cert: pem(clientCertificatePath, 'clientCertificatePath'),
    key: pem(clientKeyPath, 'clientKeyPath'),
  })
  let current = read()
  let lookedAt = Date.now()
  return () => {
    if (Date.now() - lookedAt < lookEveryMs) return current
    lookedAt = Date.now()
    try {
      const now = read()
      if (JSON.stringify(now) !== JSON.stringify(current)) current = now
    } catch {
      // Keeps the last ones.
    }
    return current
  }
}

function pem(path: string | undefined, member: string): string | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalidConfig(`incomingAuth.authz.httpv1.http.${member}: the file ${path} cannot be read`, cause)
  }
  if (text.includes('-----BEGIN ')) return text
  throw invalidConfig(`incomingAuth.authz.httpv1.http.${member}: the file ${path} holds no PEM`)
}
