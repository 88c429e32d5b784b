/**
 * The error that all OAuth client calls throw. The `kind` of an error distinguishes "try later" from "sign in again".
 *
 * `message` is safe to show to clients. The peer's text (`description`, `cause`) is only for logs and the operator's
 * own terminal.
 * Source: RFC 6749 section 5.2.
 */
import { type ErrorCode, GatehouseError } from '../../schemas/index.ts'

/**
 * - `unreachable`: network error, timeout, 5xx or 429; the same call may succeed later
 * - `refused`: the server returned an OAuth error (`error` contains its code) or another 4xx
 * - `absent`: the document or endpoint does not exist
 * - `protocol`: the response violates the protocol (wrong issuer, not JSON, missing member) and must not be used
 */
export type OAuthErrorKind = 'unreachable' | 'refused' | 'absent' | 'protocol'

const codes = {
  unreachable: 'OAUTH_UNAVAILABLE',
  refused: 'OAUTH_REFUSED',
  absent: 'OAUTH_ABSENT',
  protocol: 'OAUTH_PROTOCOL',
} as const satisfies Record<OAuthErrorKind, ErrorCode>

export interface OAuthErrorDetails {
  /** OAuth error code from the server, if it is syntactically valid. */
  readonly error?: string | undefined
  /** The server's error text (refusals/peer-words.ts). Only for logs and the operator's terminal. */
  readonly description?: string | undefined
  /** HTTP status of the response. */
  readonly status?: number | undefined
  /** Seconds from the response's Retry-After. */
  readonly retryAfterSec?: number | undefined
  readonly cause?: unknown
}

export class OAuthClientError extends GatehouseError {
  readonly kind: OAuthErrorKind
  readonly error: string | undefined
  readonly description: string | undefined
  readonly responseStatus: number | undefined
  readonly retryAfterSec: number | undefined

  /** `text` contains only our own wording and, at most, the server's OAuth error code. */
  constructor(kind: OAuthErrorKind, text: string, details: OAuthErrorDetails = {}) {
    super(codes[kind], {
      detail: text,
      ...(details.retryAfterSec === undefined
        ? {}
        : { headers: { 'retry-after': String(details.retryAfterSec) } }),
      ...causeOf(details),
    })
    this.name = 'OAuthClientError'
    this.kind = kind
    this.error = details.error
    this.description = details.description
    this.responseStatus = details.status
    this.retryAfterSec = details.retryAfterSec
  }
}

/** A shorter value is not a secret, and could be part of any word. */
const minSecretLength = 6

/** Masks secrets in the server's code and text. */
export function withoutSecrets(error: unknown, secrets: readonly (string | undefined)[]): unknown {
  if (!(error instanceof OAuthClientError)) return error
  const mask = (text: string): string =>
    secrets.reduce<string>(
      (masked, secret = '') => (secret.length < minSecretLength ? masked : masked.replaceAll(secret, '…')),
      text,
    )
  const { kind, message, error: code, description, responseStatus: status, retryAfterSec, cause } = error
  return new OAuthClientError(kind, mask(message), {
    error: code === undefined ? undefined : mask(code),
    description: description === undefined ? undefined : mask(description),
    status,
    retryAfterSec,
    // If the error has a description, its cause only repeats the description.
    cause: description === undefined ? cause : undefined,
  })
}

/** Puts the server's text into the cause, which appears in logs and never in responses to clients. */
function causeOf({ cause, description }: OAuthErrorDetails): { readonly cause?: unknown } {
  if (description !== undefined) {
    const options = cause === undefined ? {} : { cause }
    return { cause: new Error(`the server reports: ${description}`, options) }
  }
  return cause === undefined ? {} : { cause }
}

/** Returns the server's text from an error, for the operator's terminal; undefined when the server sent none. */
export function serverWords(error: unknown): string | undefined {
  let failure: unknown = error
  for (let depth = 0; depth < 5 && failure instanceof Error; depth++) {
    if (failure instanceof OAuthClientError && failure.description !== undefined) return failure.description
    failure = failure.cause
  }
  return undefined
}

/** True when the same call may succeed later without any change. */
export function isTransient(error: unknown): boolean {
  return error instanceof OAuthClientError && error.kind === 'unreachable'
}
