/**
 * The OAuth error codes, and the error class that passes them to the response.
 *
 * `description` is for the client's developer: fixed wording plus parameter names, but no values from the request.
 * Source: RFC 6749 sections 4.1.2.1 and 5.2, RFC 7591 section 3.2.2, RFC 8707 section 2, RFC 9101 section 6, OpenID
 * Connect Core section 3.1.2.6, RFC 6750 section 3.1.
 */
import { ModuleError } from '../../../schemas/index.ts'

const oauthCodes = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_response_type: 400,
  unsupported_response_mode: 400,
  invalid_scope: 400,
  invalid_target: 400,
  access_denied: 403,
  server_error: 500,
  temporarily_unavailable: 503,
  login_required: 400,
  consent_required: 400,
  interaction_required: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  registration_not_supported: 400,
  invalid_redirect_uri: 400,
  invalid_client_metadata: 400,
  invalid_dpop_proof: 400,
  use_dpop_nonce: 400,
  invalid_token: 401,
  insufficient_scope: 403,
} as const satisfies Record<string, number>

export type OAuthCode = keyof typeof oauthCodes

/** The reason why a client's authentication or assertion failed, for the audit log only. */
interface ClientRejection {
  /** Absent for an unknown client, because untrusted clients choose the value. */
  readonly clientId?: string
  /** Subject of an assertion whose signature is valid. */
  readonly userId?: string
  /** Reason in fixed wording. */
  readonly reason: string
}

interface OAuthErrorOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
  readonly rejection?: ClientRejection
}

export class OAuthError extends ModuleError {
  readonly error: OAuthCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly rejection: ClientRejection | undefined

  constructor(error: OAuthCode, description: string, options: OAuthErrorOptions = {}) {
    super(description, options.cause === undefined ? {} : { cause: options.cause })
    this.error = error
    this.status = options.status ?? oauthCodes[error]
    this.headers = options.headers ?? {}
    this.rejection = options.rejection
  }
}

/**
 * Returns the error for a handle that does not match any stored login. The error does not reveal whether the handle
 * ever existed.
 */
export function expiredLoginError(): OAuthError {
  return new OAuthError(
    'invalid_request',
    'this login has expired or was already used. Go back to your client and start again.',
  )
}
