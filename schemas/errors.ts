/**
 * The table of all errors that leave a module, and the class for them.
 *
 * A row defines the HTTP status and a default text that is safe for clients. It also defines the JSON-RPC code if the
 * error can reach an MCP client, and the OAuth error code if the error can reach an OAuth client. The edges render the
 * errors: runtime/net (RFC 9457), runtime/mcp (JSON-RPC 2.0), runtime/oauth (RFC 6749).
 */
interface ErrorRow {
  readonly status: number
  readonly rpc?: number
  readonly oauth?: string
  readonly text: string
}

export const errors = {
  INVALID_CONFIG: { status: 400, text: 'the configuration is invalid' },
  BAD_REQUEST: { status: 400, rpc: -32600, text: 'Bad Request' },
  PARSE_ERROR: { status: 400, rpc: -32700, text: 'Parse error' },
  INVALID_REQUEST: { status: 400, rpc: -32600, text: 'Invalid Request' },
  BATCH_REFUSED: { status: 400, rpc: -32600, text: 'JSON-RPC batches are not supported' },
  METHOD_NOT_FOUND: { status: 404, rpc: -32601, text: 'Method not found' },
  INVALID_PARAMS: { status: 400, rpc: -32602, text: 'Invalid params' },
  INTERNAL: { status: 500, rpc: -32603, text: 'Internal error' },
  NOT_FOUND: { status: 404, text: 'Not Found' },
  METHOD_NOT_ALLOWED: { status: 405, text: 'Method Not Allowed' },
  NOT_ACCEPTABLE: { status: 406, rpc: -32600, text: 'Not Acceptable' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: -32600, text: 'Unsupported Media Type' },
  NOT_IMPLEMENTED: { status: 501, rpc: -32600, text: 'Not Implemented' },
  REQUEST_TOO_LARGE: { status: 413, text: 'Request Entity Too Large' },
  ORIGIN_DENIED: { status: 403, rpc: -32600, text: 'Origin not allowed' },
  HOST_DENIED: { status: 403, rpc: -32600, text: 'Host not allowed' },
  UNAUTHENTICATED: { status: 401, oauth: 'invalid_token', text: 'authentication is required' },
  INVALID_TOKEN: { status: 401, oauth: 'invalid_token', text: 'the access token is not valid' },
  DPOP_PROOF_INVALID: {
    status: 401,
    oauth: 'invalid_dpop_proof',
    text: 'the DPoP proof is missing or invalid',
  },
  DPOP_NONCE_REQUIRED: {
    status: 401,
    oauth: 'use_dpop_nonce',
    text: 'the DPoP proof must contain the nonce in the DPoP-Nonce header',
  },
  AUTH_UNAVAILABLE: { status: 503, text: 'authentication service temporarily unavailable' },
  OAUTH_UNAVAILABLE: { status: 503, rpc: -32603, text: 'the authorization server could not be reached' },
  OAUTH_REFUSED: { status: 502, rpc: -32603, text: 'the authorization server refused the request' },
  OAUTH_ABSENT: {
    status: 502,
    rpc: -32603,
    text: 'the authorization server does not support this operation',
  },
  OAUTH_PROTOCOL: { status: 502, rpc: -32603, text: 'the authorization server sent an invalid response' },
  CREDENTIALS_MISSING: { status: 401, oauth: 'invalid_request', text: 'authorization header required' },
  CREDENTIALS_MALFORMED: {
    status: 401,
    oauth: 'invalid_request',
    text: "invalid authorization header format, expected 'Bearer <token>'",
  },
  SUBJECT_REFUSED: {
    status: 401,
    rpc: -32603,
    oauth: 'invalid_token',
    text: 'the access token was not accepted for this backend',
  },
  UPSTREAM_TOKEN_MISSING: {
    status: 401,
    rpc: -32603,
    oauth: 'invalid_token',
    text: 'the login with the identity provider has expired: sign in again',
  },
  UPSTREAM_NOT_CONNECTED: {
    status: 401,
    rpc: -32603,
    oauth: 'invalid_token',
    text: 'a required identity provider is not connected: sign in again',
  },
  USER_REQUIRED: {
    status: 403,
    rpc: -32603,
    text: 'this backend requires a user who signed in here; the caller did not sign in',
  },
  FORBIDDEN: { status: 403, rpc: 403, text: 'call denied by authorization policy' },
  DECISION_UNAVAILABLE: {
    status: 503,
    rpc: -32603,
    text: 'authorization check failed: try again later',
  },
  WEBHOOK_UNAVAILABLE: {
    status: 503,
    rpc: -32603,
    text: 'a required webhook returned no valid response: try again later',
  },
  GUARDRAIL_FAILED: {
    status: 502,
    rpc: -32603,
    text: 'guardrail check failed: content withheld',
  },
  CSRF_REFUSED: {
    status: 403,
    text: 'the request does not come from a page of this console: reload the page',
  },
  LOGIN_TOO_OLD: { status: 403, text: 'this action needs a recent login: sign in again' },
  PAYLOAD_NEEDS_AUDITOR: { status: 403, text: 'only auditors and the caller can see this payload' },
  PAYLOAD_NOT_RECORDED: { status: 404, text: 'the payload of this call was not recorded' },
  PAYLOAD_EVICTED: { status: 410, text: 'the payload of this call is no longer stored' },
  WRONG_REPLICA: { status: 409, text: 'another replica has this data: reload the page' },
  TOO_MANY_STREAMS: {
    status: 503,
    text: 'too many event streams are open: close other console windows',
  },
  TOO_MANY_TRIES: { status: 429, text: 'too many tries are running: stop one of them first' },
  APPROVAL_STALE: {
    status: 409,
    text: 'the definition changed after your review: reload and review it again',
  },
  LOCK_NOT_WRITTEN: { status: 409, text: 'the lock was not written' },
  TRY_IS_READ: { status: 409, text: 'another page is already reading the events of this try' },
  RATE_LIMITED: { status: 429, rpc: 429, text: 'Rate limit exceeded' },
  QUOTA_EXCEEDED: { status: 429, rpc: 429, text: 'Quota exceeded' },
  RESOURCE_NOT_FOUND: { status: 400, rpc: -32602, text: 'Resource not found' },
  SESSION_NOT_FOUND: { status: 404, rpc: -32001, text: 'Session not found' },
  STORE_DOWN: { status: 503, rpc: -32603, text: 'the store is unavailable' },
  STORE_FULL: { status: 503, rpc: -32603, text: 'the store is full' },
  SESSION_STORE_DOWN: { status: 503, text: 'session store unavailable' },
  TOO_MANY_SESSIONS: { status: 503, rpc: -32603, text: 'too many sessions' },
  HEADER_MISMATCH: { status: 400, rpc: -32020, text: 'header and body disagree' },
  CAPABILITY_REQUIRED: { status: 400, rpc: -32021, text: 'a required client capability is missing' },
  VERSION_UNSUPPORTED: { status: 400, rpc: -32022, text: 'unsupported protocol version' },
  BACKEND_UNREACHABLE: { status: 502, rpc: -32603, text: 'the backend could not be reached' },
  BACKEND_FAILED: { status: 502, rpc: -32603, text: 'the backend failed' },
  BACKEND_TIMEOUT: { status: 504, rpc: -32603, text: 'the backend did not answer in time' },
  BACKEND_PROTOCOL: { status: 502, rpc: -32603, text: 'the backend sent a response that is not valid MCP' },
  BACKEND_RESULT_TOO_LARGE: { status: 502, rpc: -32603, text: 'the result exceeds the size limit' },
  BACKEND_UNAVAILABLE: { status: 503, rpc: -32603, text: 'a backend is unavailable' },
  BACKEND_SESSION_LOST: { status: 503, rpc: -32603, text: 'the backend has lost the session' },
  BACKEND_AUTH_FAILED: { status: 502, rpc: -32603, text: 'authentication to the backend failed' },
  BACKEND_SIGN_IN_REQUIRED: { status: 502, rpc: -32603, text: 'the backend requires a sign-in' },
  BACKEND_AUTH_UNAVAILABLE: {
    status: 503,
    rpc: -32603,
    text: 'authentication to the backend is temporarily unavailable',
  },
  BACKEND_ROLE_DENIED: { status: 403, rpc: -32603, text: 'no role is mapped for this caller' },
  ENTERPRISE_REQUIRED: { status: 503, rpc: -32603, text: 'on-behalf-of exchange is not enabled' },
  NAME_TAKEN: { status: 409, text: 'the name is taken' },
  OVERLOADED: { status: 503, rpc: -32603, text: 'the server is overloaded: try again later' },
  SHUTTING_DOWN: { status: 503, rpc: -32603, text: 'the server is shutting down' },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errors

export interface ErrorOptions {
  /** Replaces the row's text. The detail must be safe for clients. */
  readonly detail?: string
  /** Structured data for JSON-RPC `error.data`. The data must be safe for clients. */
  readonly data?: unknown
  /** Extra response headers, for example `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The underlying error, for the log only. */
  readonly cause?: unknown
}

/** An error with a row in the table. `message` and `data` are safe for clients; `cause` is for the log only. */
export class GatehouseError extends Error {
  readonly code: ErrorCode
  readonly data: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    super(options.detail ?? errors[code].text, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'GatehouseError'
    this.code = code
    this.data = options.data
    this.headers = options.headers ?? {}
  }

  /** The row's HTTP status. */
  get status(): number {
    return errors[this.code].status
  }

  /** The row's JSON-RPC error code; -32603 when the row has none. */
  get rpcCode(): number {
    const row: ErrorRow = errors[this.code]
    return row.rpc ?? -32603
  }
}

/** Returns the error for invalid configuration. `detail` states the field, the value's shape and the rule. */
export function invalidConfig(detail: string, cause?: unknown): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail, cause })
}

/**
 * Base class of all other errors in this project. Such an error must not leave its module: the caller catches it by
 * class and converts it to a GatehouseError, a violation or a result. An edge reports such an error as INTERNAL.
 */
export class ModuleError extends Error {
  constructor(message?: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
  }
}
