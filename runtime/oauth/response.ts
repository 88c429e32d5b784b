/**
 * Renders an error as OAuth JSON for responses to OAuth clients and for every 401.
 *
 * Errors without an OAuth code in the error table become `server_error`. Causes are never sent.
 * Source: RFC 6749 sections 5.1 and 5.2.
 */
import type { ServerResponse } from 'node:http'
import { errors, GatehouseError } from '../../schemas/index.ts'
import { sendBody } from '../net/index.ts'

export interface OAuthResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly error: string; readonly error_description: string }
}

/** Returns the error's OAuth code from the error table, if it has one. */
export function oauthCode(error: unknown): string | undefined {
  if (!(error instanceof GatehouseError)) return undefined
  const row = errors[error.code]
  return 'oauth' in row ? row.oauth : undefined
}

/**
 * Returns the response's status, headers and body. Without an OAuth code, the error is `server_error`, or
 * `temporarily_unavailable` for 503.
 */
function oauthResponse(error: unknown): OAuthResponse {
  const known = error instanceof GatehouseError ? error : new GatehouseError('INTERNAL', { cause: error })
  const code = oauthCode(known) ?? (known.status === 503 ? 'temporarily_unavailable' : 'server_error')
  return {
    status: known.status,
    headers: { 'Cache-Control': 'no-store', Pragma: 'no-cache', ...known.headers },
    body: { error: code, error_description: toErrorDescription(known.message) },
  }
}

export function sendOAuthError(res: ServerResponse, error: unknown): void {
  const { status, headers, body } = oauthResponse(error)
  sendBody(res, status, 'application/json', JSON.stringify(body), headers)
}

/**
 * Replaces characters that RFC 6749 section 5.2 does not allow. The section allows printable ASCII except the double
 * quote and the backslash.
 */
function toErrorDescription(text: string): string {
  return text.replace(/"/g, "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
}
