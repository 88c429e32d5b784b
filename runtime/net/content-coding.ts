/**
 * Content codings: what is read here is neither accepted nor asked for in compressed form.
 *
 * A compressed request would pass unread through what is checked here. A backend is asked for identity; one that
 * compresses all the same is told apart from one that sends nonsense. Answers that only pass through keep their coding.
 * Source: RFC 9110 sections 8.4, 12.5.3 and 15.5.16.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../schemas/index.ts'

/** BACKEND_PROTOCOL for a response with a coded body; undefined for any other. */
export function codedAnswer(headers: IncomingHttpHeaders): GatehouseError | undefined {
  const coding = codingOf(headers)
  if (coding === undefined) return undefined
  const shown = /^[\w.-]{1,32}$/.test(coding) ? coding : 'unknown'
  return new GatehouseError('BACKEND_PROTOCOL', {
    detail: `the response is compressed (Content-Encoding: ${shown}) although identity was asked for: turn compression off at the server`,
  })
}

/** The first coding that is not identity. */
export function codingOf(headers: IncomingHttpHeaders): string | undefined {
  return headers['content-encoding']
    ?.split(',')
    .map((coding) => coding.trim().toLowerCase())
    .find((coding) => coding !== '' && coding !== 'identity')
}
