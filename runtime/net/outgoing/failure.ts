/** The kind of a network failure. The codes in `gatehouse doctor` end with this word. */
export type FailureKind =
  | 'dns'
  | 'refused'
  | 'timeout'
  | 'closed'
  | 'unreachable'
  | 'address'
  | 'proxy'
  | 'tls'
  | 'not-http'
  | 'too-large'

export interface NetworkFailure {
  readonly failure: FailureKind
  readonly detail: string
}

const byCode: Readonly<Record<string, FailureKind>> = {
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  EAI_FAIL: 'dns',
  ENODATA: 'dns',
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  TIMED_OUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  ABORT_ERR: 'timeout',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  UND_ERR_SOCKET: 'closed',
  UND_ERR_HEADERS_OVERFLOW: 'too-large',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
}

/** Classifies an error, including its causes and the errors from several attempts. */
export function failureOf(error: unknown): NetworkFailure {
  return (
    knownFailure(error) ?? {
      failure: 'closed',
      detail: error instanceof Error ? error.message : String(error),
    }
  )
}

/** Like `failureOf`, but returns undefined for an error that is not a network failure. */
export function knownFailure(error: unknown): NetworkFailure | undefined {
  for (const each of chain(error)) {
    const code = 'code' in each && typeof each.code === 'string' ? each.code : ''
    // Keeps these messages, which already contain the host and the next step.
    if (code === 'HTTP_PROXY_FAILED') return { failure: 'proxy', detail: each.message }
    if (code === 'ADDRESS_REFUSED') return { failure: 'address', detail: each.message }
    const known = byCode[code]
    if (known !== undefined) return { failure: known, detail: code }
    if (code.startsWith('HPE_')) return { failure: 'not-http', detail: code }
    if (/CERT|TLS|SSL|SELF_SIGNED|^UNABLE_TO/.test(code)) return { failure: 'tls', detail: code }
    if (each.name === 'TimeoutError') return { failure: 'timeout', detail: 'no response in time' }
  }
  return undefined
}

function chain(error: unknown, depth = 0): readonly Error[] {
  if (!(error instanceof Error) || depth > 7) return []
  const several = error instanceof AggregateError ? error.errors.slice(0, 5) : []
  return [
    error,
    ...several.flatMap((each: unknown) => chain(each, depth + 1)),
    ...chain(error.cause, depth + 1),
  ]
}

const words: Readonly<Record<Exclude<FailureKind, 'proxy' | 'address'>, string>> = {
  dns: 'name resolution failed',
  refused: 'connection refused',
  timeout: 'no response in time',
  closed: 'connection closed without a response',
  unreachable: 'no route to the address',
  tls: 'TLS handshake failed',
  'not-http': 'the response is not HTTP',
  'too-large': 'the response headers are too large',
}

export function networkFailureText({ failure, detail }: NetworkFailure): string {
  return failure === 'proxy' || failure === 'address' ? detail : `${words[failure]} (${detail})`
}

/**
 * True if a response rejects the host name in the request: status 421, or an error message from the DNS rebinding
 * protection in SDKs and web frameworks.
 */
export function rejectsHost(status: number, text: string | undefined): boolean {
  return (
    status === 421 || ((status === 400 || status === 403) && text !== undefined && hostRejection.test(text))
  )
}

const hostRejection =
  /\b(?:invalid|disallowed|blocked|unknown|untrusted) host\b|\bhost (?:(?:header|name) )?(?:is )?not allowed\b/i
