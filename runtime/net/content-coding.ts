/**
 * Checks content codings. Gatehouse inspects bodies, so it rejects compressed requests, which would bypass the checks.
 * Gatehouse requests the identity coding from backends, and reports a compressed response with a separate error.
 * Responses that are only forwarded keep their content coding.
 * Source: RFC 9110 sections 8.4, 12.5.3 and 15.5.16.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../schemas/index.ts'

/** Returns a BACKEND_PROTOCOL error for a compressed response; undefined for any other response. */
export function compressedResponseError(headers: IncomingHttpHeaders): GatehouseError | undefined {
  const coding = codingOf(headers)
  if (coding === undefined) return undefined
  const shown = /^[\w.-]{1,32}$/.test(coding) ? coding : 'unknown'
  return new GatehouseError('BACKEND_PROTOCOL', {
    detail: `the response is compressed (Content-Encoding: ${shown}) although Gatehouse requested identity; disable compression on the server`,
  })
}

/** Returns the first coding that is not `identity`. */
export function codingOf(headers: IncomingHttpHeaders): string | undefined {
  return headers['content-encoding']
    ?.split(',')
    .map((coding) => coding.trim().toLowerCase())
    .find((coding) => coding !== '' && coding !== 'identity')
}
